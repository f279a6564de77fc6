"""Which runs of source turns a build has to summarise, and which stored summaries it takes as they are.

A segment is a run of turns that ends at a cut. It is made once from the turns themselves and kept under the hash of
what the summarizer was given, so that a later build pays for new turns only. Nothing here does any input or output.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil

from prefold.storage.types import StoredSegment

SMALL_SHARE = 0.5
"""Of a chunk: a last segment with less source is small, and is made anew with the turns that follow it."""
LEAST_RUN_TOKENS = 300
"""Less source than this is a crumb: a summary of it would hardly be smaller."""
_HASH_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class SentTurn:
    """What is known of a turn as the summarizer gets it."""

    seq: int
    revision: int
    digest: str
    """Of its text as sent: after redaction, clipping and stripping."""
    tokens: int
    """Of its text as sent."""
    raw_tokens: int
    """Of the turn in the context."""
    is_cut: bool
    """A segment may end right before this turn."""


@dataclass(frozen=True, slots=True)
class Run:
    """Turns ``start`` to ``end`` (exclusive), counted in the turns of the build."""

    start: int
    end: int


Piece = StoredSegment | Run
"""What stands for some turns: a summary that is there, or one to make."""


def source_hash(turns: Iterable[SentTurn]) -> str:
    """Of source turns: any change of what was said, or of what is sent of it, gives another."""
    return _hash(f"{turn.seq}:{turn.revision}:{turn.digest}" for turn in turns)


def merged_hash(hashes: Iterable[str]) -> str:
    """Of a merged segment: from the hashes of the segments that it stands for."""
    return _hash(hashes)


def known_pieces(turns: Sequence[SentTurn], stored: Iterable[StoredSegment], prompt_version: str) -> list[Piece]:
    """Stored segments that match ``turns``, and the runs without one: together every turn, once, in order.

    Where several begin at one turn the longest that matches: the shorter one was made anew with more turns. A gap that
    is a crumb takes the segment after it along.
    """
    matching = _matching(turns, stored, prompt_version)
    pieces: list[Piece] = []
    at = gap = 0
    while at < len(turns):
        found = matching.get(at)
        if found is None or _is_crumb(turns, gap, at):
            at += 1
            continue
        if gap < at:
            pieces.append(Run(gap, at))
        pieces.append(found[0])
        at = gap = found[1]
    return [*pieces, Run(gap, at)] if gap < at else pieces


def plan_segments(turns: Sequence[SentTurn], known: Sequence[Piece], chunk_tokens: int) -> list[Piece]:
    """``known`` with its runs cut into ones of at most ``chunk_tokens``: what this build takes and makes.

    A small last segment before new turns is made anew with them, so that no crumbs are left, but only while it has no
    more source than they have: no build reads more old tokens than new ones, so over a whole conversation a token is
    read twice in the mean at most.
    """
    pieces = list(known)
    if len(pieces) > 1 and isinstance(new := pieces[-1], Run) and isinstance(last := pieces[-2], StoredSegment):
        start = next(index for index, turn in enumerate(turns) if turn.seq == last.first_seq)
        old, fresh = _tokens(turns[start : new.start]), turns[new.start : new.end]
        is_paid = old <= max(_tokens(fresh), sum(turn.raw_tokens for turn in fresh))
        if old <= SMALL_SHARE * chunk_tokens and is_paid:
            pieces[-2:] = [Run(start, new.end)]
    planned: list[Piece] = []
    for piece in pieces:
        planned.extend(runs_of(turns[: piece.end], piece.start, chunk_tokens) if isinstance(piece, Run) else [piece])
    return planned


def runs_of(turns: Sequence[SentTurn], start: int, chunk_tokens: int) -> list[Run]:
    """Turns from ``start`` on in runs that end at cuts, of about one size, none over ``chunk_tokens``.

    Except where no cut lies within it: turns that belong together are one run, however large. Or where a crumb would
    be left over.
    """
    runs: list[Run] = []
    for run in _even_runs(turns, start, chunk_tokens):
        joins = bool(runs) and _joins(turns, runs[-1], run, chunk_tokens)
        runs.append(Run(runs.pop().start, run.end) if joins else run)
    if len(runs) > 1 and _is_crumb(turns, runs[-1].start, runs[-1].end):
        rest = runs.pop()
        runs.append(Run(runs.pop().start, rest.end))
    return runs


def _joins(turns: Sequence[SentTurn], before: Run, run: Run, chunk_tokens: int) -> bool:
    """A crumb joins its neighbour, unless many of them would grow one run without end."""
    if _is_crumb(turns, before.start, before.end):
        return True
    return _is_crumb(turns, run.start, run.end) and _tokens(turns[before.start : before.end]) <= chunk_tokens


def _even_runs(turns: Sequence[SentTurn], start: int, chunk_tokens: int) -> Iterator[Run]:
    groups = _groups(turns, start)
    left = sum(_tokens(turns[group.start : group.end]) for group in groups)
    begin, size = start, 0
    target = _even(left, chunk_tokens)
    for group in groups:
        tokens = _tokens(turns[group.start : group.end])
        if group.start > begin and (size + tokens > chunk_tokens or size + tokens / 2 > target):
            yield Run(begin, group.start)
            begin, left, size = group.start, left - size, 0
            target = _even(left, chunk_tokens)
        size += tokens
    if begin < len(turns):
        yield Run(begin, len(turns))


def halves_of(turns: Sequence[SentTurn], run: Run) -> tuple[Run, Run] | None:
    """``run`` in two at the cut that is nearest its middle; None where a half would be a crumb."""
    tokens = _tokens(turns[run.start : run.end])
    cuts = [index for index in range(run.start + 1, run.end) if turns[index].is_cut]
    middle = min(cuts, key=lambda cut: abs(_tokens(turns[run.start : cut]) - tokens / 2), default=run.start)
    before = _tokens(turns[run.start : middle])
    if min(before, tokens - before) < LEAST_RUN_TOKENS:
        return None
    return Run(run.start, middle), Run(middle, run.end)


def _even(tokens: int, chunk_tokens: int) -> float:
    return tokens / max(1, ceil(tokens / chunk_tokens))


def _groups(turns: Sequence[SentTurn], start: int) -> list[Run]:
    """Turns from ``start`` on, in the smallest runs that end at cuts."""
    bounds = [index for index in range(start + 1, len(turns)) if turns[index].is_cut]
    ends = [*bounds, len(turns)] if start < len(turns) else []
    return [Run(begin, end) for begin, end in zip([start, *bounds], ends, strict=False)]


def _matching(
    turns: Sequence[SentTurn], stored: Iterable[StoredSegment], prompt_version: str
) -> dict[int, tuple[StoredSegment, int]]:
    """By the place where it begins: the longest stored segment that matches, and the place after its end."""
    places = {turn.seq: index for index, turn in enumerate(turns)}
    found: dict[int, tuple[StoredSegment, int]] = {}
    for one in sorted(stored, key=lambda one: one.last_seq):
        start, last = places.get(one.first_seq), places.get(one.last_seq)
        if one.level or one.prompt_version != prompt_version or start is None or last is None or last < start:
            continue
        if one.source_hash == source_hash(turns[start : last + 1]):
            found[start] = one, last + 1
    return found


def _is_crumb(turns: Sequence[SentTurn], start: int, end: int) -> bool:
    return start < end and _tokens(turns[start:end]) < LEAST_RUN_TOKENS


def _tokens(turns: Iterable[SentTurn]) -> int:
    return sum(turn.tokens for turn in turns)


def _hash(parts: Iterable[str]) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:_HASH_CHARACTERS]
