"""Breadth-first search over every state that a scope allows: the first trace found to a broken invariant is a shortest."""

import gc
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.property.protocol_model.invariants import broken
from tests.property.protocol_model.protocol import Protocol
from tests.property.protocol_model.scope import ALL_GUARDS, Guard, Scope
from tests.property.protocol_model.state import State


@dataclass(frozen=True, slots=True)
class Violation:
    what: str
    trace: tuple[str, ...]
    """The steps from an empty session; the last one broke it."""

    def __str__(self) -> str:
        return f"{self.what}\n  " + "\n  ".join(f"{n}. {label}" for n, label in enumerate(self.trace, 1))


@dataclass(frozen=True, slots=True)
class Search:
    states: int
    steps: int
    depth: int
    violation: Violation | None
    """None: the whole space was searched and nothing broke."""


def search(scope: Scope, guards: frozenset[Guard] = ALL_GUARDS, kind: str = "") -> Search:
    """Every state within the scope, or up to the first violation (of this kind: the words before its colon)."""
    with _without_collector():
        return _search(Protocol(scope, guards), kind)


@contextmanager
def _without_collector() -> Iterator[None]:
    """States hold no cycles, and looking for some in millions of tuples takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _search(protocol: Protocol, kind: str) -> Search:
    start = protocol.initial()
    came_from: dict[State, tuple[State, str] | None] = {start: None}
    frontier = deque([(start, 0)])
    taken = depth = 0
    while frontier:
        before, depth = frontier.popleft()
        for label, after in protocol.steps(before):
            taken += 1
            fresh = after not in came_from
            what = next((w for w in broken(protocol, before, label, after, fresh) if w.startswith(kind)), None)
            if what:
                trace = (*_trace(came_from, before), label)
                return Search(len(came_from), taken, len(trace), Violation(what, trace))
            if fresh:
                came_from[after] = (before, label)
                frontier.append((after, depth + 1))
    return Search(len(came_from), taken, depth, None)


def _trace(came_from: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    labels: list[str] = []
    while (step := came_from[state]) is not None:
        state, label = step
        labels.append(label)
    return labels[::-1]
