"""The same questions through a running Prefold: turns are published, embedded by its workers, and searched for."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from bench.recall.exact import MOST
from bench.recall.sets import Talk
from prefold.client import Prefold
from prefold.stack.embedded import temporary_stack

_TURNS_A_CALL: Final = 50
_PATIENCE_SECONDS: Final = 1_800


class RunningTalk:
    """One conversation as a session of a running gateway."""

    def __init__(self, talk: Talk, prefold: Prefold) -> None:
        self._talk = talk
        self._prefold = prefold
        self._place = {str(turn["id"]): number for number, turn in enumerate(talk.turns)}

    def publish(self) -> None:
        """Appends all turns."""
        self._prefold.create_session(self._talk.name, hard_limit_tokens=10_000_000)
        for start in range(0, len(self._talk.turns), _TURNS_A_CALL):
            self._prefold.append_many(self._talk.name, self._talk.turns[start : start + _TURNS_A_CALL])

    def wait(self) -> None:
        """Until every turn has been seen by the embed worker."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (seen := self._prefold.session(self._talk.name)).embedded_to < seen.head_seq:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._talk.name}: {seen.embedded_to} of {seen.head_seq} turns are embedded")
            time.sleep(0.5)

    def ranked(self, query: str) -> list[int]:
        """Places of turns, best first, from ``POST /v1/search``."""
        found = self._prefold.search(query, session=self._talk.name, kinds=["turn"], limit=MOST)
        return [self._place[hit.turn_id] for hit in found]


@contextmanager
def running_talks(talks: Sequence[Talk]) -> Iterator[list[RunningTalk]]:
    """All of them on a stack of its own, each embedded to its end."""
    with temporary_stack(durability="fast") as stack, Prefold(stack.gateway_url) as prefold:
        opened = [RunningTalk(talk, prefold) for talk in talks]
        for one in opened:
            one.publish()
        for one in opened:
            one.wait()
        yield opened
