"""What the processes that append count of it. Not done by ``Sessions`` itself: a backend on Redis serves no metrics."""

from prefold.storage.types import AppendResult
from prefold.telemetry import tracing
from prefold.telemetry.metrics import APPEND_TURNS, LIMIT_CROSSINGS, SWAPS

__all__ = ["note_append"]

_STORED, _DUPLICATE = ("stored",), ("duplicate",)


def note_append(result: AppendResult) -> None:
    """Count what an append did, and begin the trace of what follows from it."""
    turns = result.turns
    if tracing.is_on():
        _trace(result)
    if len(turns) == 1 and not turns[0].duplicate and not result.crossed and not result.swapped_now:
        APPEND_TURNS.add(_STORED)  # nearly all of them
        return
    duplicates = sum(turn.duplicate for turn in turns)
    APPEND_TURNS.add(_STORED, len(turns) - duplicates)
    APPEND_TURNS.add(_DUPLICATE, duplicates)
    if result.crossed:
        LIMIT_CROSSINGS.labels("ready" if result.swapped_now else "missing").inc()
    if result.swapped_now:
        SWAPS.labels("ready").inc()


def _trace(result: AppendResult) -> None:
    stored = [turn.seq for turn in result.turns if not turn.duplicate]
    if stored:
        ref = result.ref
        tracing.turns_stored(
            (ref.tenant, ref.session, ref.incarnation, max(stored)),
            {
                "tenant": ref.tenant,
                "session": ref.session,
                "turns": len(stored),
                "last_seq": max(stored),
                "status": result.status,
            },
        )
