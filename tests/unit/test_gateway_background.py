"""What is loaded beside the start of the gateway, when the load fails."""

import asyncio

import pytest

from prefold.errors import ConfigurationError, PrefoldError, UnavailableError
from prefold.gateway.background import InBackground
from tests.support.waiting import wait_until_async


class Maker:
    """Raises what it was given, one after the other, then makes a thing."""

    def __init__(self, *failures: PrefoldError) -> None:
        self.failures = list(failures)

    def __call__(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "made"


async def test_a_load_that_failed_for_now_is_tried_again_by_itself() -> None:
    thing = InBackground("thing", Maker(UnavailableError("away"), UnavailableError("away")), pause_seconds=0.01)
    with pytest.raises(UnavailableError):
        await thing.get()

    async def is_ready() -> bool:
        return thing.is_ready

    await wait_until_async("it is loaded", is_ready)
    assert await thing.get() == "made"


async def test_a_load_that_failed_for_good_is_not_tried_again() -> None:
    thing = InBackground("thing", Maker(ConfigurationError("no such model")), pause_seconds=0.0)
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            await thing.get()
        await asyncio.sleep(0)
