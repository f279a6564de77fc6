"""Waiting for the workers by watching what they have done, never by guessing how long they take."""

import time
from collections.abc import Callable

from prefold.client import Context, Prefold, Session
from prefold.errors import UnavailableError

_LOOK_EVERY_SECONDS = 0.05

_PASSING = frozenset({"embedder_loading", "too_slow", "unavailable"})
"""Why recall could not be had just now: a machine that starts, or has too much to do."""

_Owes = Callable[[Session], str | None]


def settle(client: Prefold, session: str, *, within_seconds: float, closed: bool = False) -> Session:
    """The session once nothing is owed for it: turns embedded, facts learnt up to its summary, a standby where one is due.

    ``closed``: facts learnt up to its last turn and the session closed. UnavailableError tells what did not come.
    """
    return _watched(client, session, lambda state: owed(state, closed=closed), within_seconds)


def await_standby(client: Prefold, session: str, *, within_seconds: float) -> Session:
    """The session once the next summary is ready, or will not come."""
    return _watched(client, session, _owed_summary, within_seconds)


def recalled_context(
    client: Prefold, session: str, query: str, budget_tokens: int | None, *, within_seconds: float
) -> Context:
    """The context with what is recalled for ``query``, read again while recall could not be had; then as it is."""
    until = time.monotonic() + within_seconds
    while True:
        context = client.context(session, query=query or None, budget_tokens=budget_tokens)
        has_all = not any(one["reason"] in _PASSING for one in context.left_out)
        if has_all or time.monotonic() > until:
            return context
        time.sleep(_LOOK_EVERY_SECONDS)


def owed(state: Session, *, closed: bool) -> str | None:
    """What the workers still have to do; None: nothing."""
    head = state.head_seq
    if state.embedded_to < head:
        return f"embedded {state.embedded_to} of {head} turns"
    summary = _owed_summary(state)
    if summary is not None:
        return summary
    due = head if closed else _summarised(state)
    if state.remembered_to < due:
        return f"learnt from {state.remembered_to} of {due} turns"
    return "not closed" if closed and not state.closed_at else None


def _owed_summary(state: Session) -> str | None:
    if state.build:
        return "a summary is being written"
    is_above = state.tokens >= state.soft_threshold_tokens
    if is_above and not state.standby and not _will_not_come(state):
        return "no summary is ready"
    return None


def _will_not_come(state: Session) -> bool:
    return bool(state.last_build_error or state.resting_until_tokens)


def _summarised(state: Session) -> int:
    return max(state.covers_to, state.standby.covers_to if state.standby else 0)


def _watched(client: Prefold, session: str, owes: _Owes, within_seconds: float) -> Session:
    until = time.monotonic() + within_seconds
    while True:
        state = client.session(session)
        missing = owes(state)
        if missing is None:
            return state
        if time.monotonic() > until:
            raise UnavailableError(f"the workers did not catch up within {within_seconds:g} s: {missing}")
        time.sleep(_LOOK_EVERY_SECONDS)
