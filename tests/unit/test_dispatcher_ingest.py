"""How often a tenant's ingest stream is passed through."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from prefold.dispatcher.ingest import Ingest, IngestOptions
from prefold.dispatcher.ingest_batch import Outcome
from prefold.dispatcher.settings import DispatcherSettings
from prefold.storage.ingest import IngestEntry


class Stream:
    """One entry that is stored, and ``held`` ones of a session that has to wait."""

    def __init__(self, held: int) -> None:
        self._entries = [IngestEntry("0-0", 1, b"s", ())] * (held + 1)

    async def take(self, _tenant: str, _owner: str, *, after: str, **_: object) -> Sequence[IngestEntry]:
        return [] if after else self._entries

    async def apply(self, *_: object, **__: object) -> Outcome:
        return Outcome(applied=["0-0"], held={"waits": 60.0})

    async def refuse(self, _tenant: str, refused: Sequence[object]) -> None:
        assert not refused


@pytest.mark.parametrize(("held", "pause"), [(1, 0.25), (40_000, 2.0), (200_000, 5.0)])
async def test_a_stream_full_of_what_has_to_wait_is_passed_through_the_more_rarely(held: int, pause: float) -> None:
    stream: Any = Stream(held)
    counter: Any = lambda: None  # noqa: E731
    reader = Ingest(stream, stream, stream, counter, IngestOptions(["acme"], "me", turns=DispatcherSettings()))
    assert await reader._pass("acme", asyncio.Event()) == pause
