"""The ways in: our own client, for each tenant at each gateway, and calls made again until they are answered."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import httpx

from prefold.client import AsyncPrefold, RetryPolicy
from prefold.errors import TransientError
from tests.chaos.storm.figures import Figures
from tests.chaos.storm.oracle import Talk
from tests.chaos.storm.town import Town

T = TypeVar("T")

POLICY = RetryPolicy(deadline_seconds=1, attempt_seconds=1, longest_pause_seconds=0.3)
"""Short, because there is another gateway to ask."""
GIVE_UP_SECONDS = 90
"""Nobody may be unavailable for so long."""
LOST_ANSWERS = 0.02
"""Share of the answers that never reach the client: the call was done, and is made again."""


class LossyTransport(httpx.AsyncHTTPTransport):
    """A network that loses some answers, and counts what the client's retries hide."""

    def __init__(self, figures: Figures, rng: random.Random) -> None:
        super().__init__()
        self._figures = figures
        self._rng = rng

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        figures, is_lost = self._figures, self._rng.random() < LOST_ANSWERS
        is_append = request.method == "POST"
        figures.in_flight += is_append
        try:
            response = await super().handle_async_request(request)
            if is_lost:
                await response.aread()
                await response.aclose()
                raise httpx.ReadError("lost on the way", request=request)
        except httpx.TransportError as error:
            figures.failed_attempts["answers lost on purpose" if is_lost else type(error).__name__] += 1
            raise
        finally:
            figures.in_flight -= is_append
        if response.status_code >= 500 or response.status_code == 429:
            figures.failed_attempts[str(response.status_code)] += 1
        return response


class Doors:
    """Any gateway will do for any call: a retry may well meet the other one."""

    def __init__(
        self, clients: dict[str, list[AsyncPrefold]], bare: dict[str, list[httpx.AsyncClient]], figures: Figures
    ) -> None:
        self._clients = clients
        self._bare = bare
        self._figures = figures

    async def insist(self, rng: random.Random, talk: Talk, call: Callable[[AsyncPrefold], Awaitable[T]]) -> T:
        """The answer, however many calls it takes. AssertionError when nobody answers for very long."""
        doors = self._clients[talk.tenant_name]
        deadline, turn = time.monotonic() + GIVE_UP_SECONDS, rng.randrange(len(doors))
        while True:
            try:
                return await call(doors[turn % len(doors)])
            except TransientError as error:
                self._figures.deadlines += 1
                if time.monotonic() > deadline:
                    raise AssertionError(f"no answer for {GIVE_UP_SECONDS} s: {error}") from error
            turn += 1
            await asyncio.sleep(0.05)

    def bare(self, rng: random.Random, talk: Talk) -> httpx.AsyncClient:
        """For calls that the client does not have."""
        return rng.choice(self._bare[talk.tenant_name])


@asynccontextmanager
async def opened_doors(town: Town, figures: Figures, rng: random.Random) -> AsyncIterator[Doors]:
    async with AsyncExitStack() as stack:
        clients: dict[str, list[AsyncPrefold]] = {}
        bare: dict[str, list[httpx.AsyncClient]] = {}
        for tenant, key in town.keys.items():
            for url in town.gateways:
                client = AsyncPrefold(url, api_key=key, retry=POLICY, transport=LossyTransport(figures, rng))
                clients.setdefault(tenant, []).append(await stack.enter_async_context(client))
                plain = httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=3)
                bare.setdefault(tenant, []).append(await stack.enter_async_context(plain))
        yield Doors(clients, bare, figures)
