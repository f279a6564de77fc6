"""What a dispatcher tells of itself on its probe, and that it never works on a store of another layout."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from prefold.config.settings import ProbeSettings
from prefold.dispatcher.outage import Outage
from prefold.errors import TransientError
from prefold.jobs.readiness import Check, queue_answers, sessions_answer, states_of
from prefold.storage.layout import meet_layout
from prefold.telemetry.probe import serving_probe

__all__ = ["ready_to_work"]


@asynccontextmanager
async def ready_to_work(
    settings: ProbeSettings, client: Redis, queue: BlockingRedis, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Serves the probe, and begins once the store was found to have our layout, or ``stop`` is set.

    ``ConfigurationError``: it has another, or the probe's address cannot be had.
    """
    checks: dict[str, Check] = {"sessions": partial(sessions_answer, client), "queue": partial(queue_answers, queue)}
    async with serving_probe(settings, partial(states_of, checks)):
        await _meet_layout(client, stop)
        yield


async def _meet_layout(client: Redis, stop: asyncio.Event) -> None:
    outage = Outage("layout")
    while not stop.is_set():
        try:
            await meet_layout(client)
        except TransientError as error:
            await outage.wait(error, stop)
        else:
            outage.over()
            return
