"""The four ways in: over HTTP and on Redis itself, blocking and asyncio, called alike."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from prefold.client import AsyncPrefold, Prefold, RetryPolicy

RETRY = RetryPolicy(deadline_seconds=10, attempt_seconds=5)


class Way(Protocol):
    """A client, called by the name of its method."""

    name: str

    @property
    def client(self) -> AsyncPrefold | Prefold: ...

    def call(self, method: str, *arguments: Any, **options: Any) -> Any: ...
    def publish(self, session: str, turns: list[Mapping[str, Any]]) -> list[Any]:
        """Through an append buffer: for each turn its answer, or the error that came out of its ticket."""
        ...


@dataclass
class Blocking:
    name: str
    client: Prefold

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        return getattr(self.client, method)(*arguments, **options)

    def publish(self, session: str, turns: list[Mapping[str, Any]]) -> list[Any]:
        buffer = self.client.buffer(session)
        tickets = [buffer.add(turn) for turn in turns]
        found: list[Any] = []
        for ticket in tickets:
            try:
                found.append(ticket.result(20))
            except Exception as error:  # noqa: BLE001  # whatever comes is what the test looks at
                found.append(error)
        buffer.close()
        return found


@dataclass
class Asynchronous:
    name: str
    client: AsyncPrefold
    runner: "asyncio.Runner"

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        async def run() -> Any:
            return await getattr(self.client, method)(*arguments, **options)

        return self.runner.run(run())

    def publish(self, session: str, turns: list[Mapping[str, Any]]) -> list[Any]:
        async def run() -> list[Any]:
            buffer = self.client.buffer(session)
            tickets = [buffer.add(turn) for turn in turns]
            found = await asyncio.gather(*tickets, return_exceptions=True)
            await buffer.aclose()
            return list(found)

        return self.runner.run(run())


def _close(runner: "asyncio.Runner", client: AsyncPrefold) -> None:
    runner.run(client.aclose())


@contextmanager
def all_ways(gateway_url: str, redis_url: str) -> Iterator[list[Way]]:
    """Over HTTP first."""
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        clients = [AsyncPrefold(gateway_url, retry=RETRY), AsyncPrefold.direct(redis_url, retry=RETRY)]
        for client in clients:
            stack.callback(_close, runner, client)
        over_http = stack.enter_context(Prefold(gateway_url, retry=RETRY))
        on_redis = stack.enter_context(Prefold.direct(redis_url, retry=RETRY))
        yield [
            Blocking("http", over_http),
            Asynchronous("http, async", clients[0], runner),
            Blocking("direct", on_redis),
            Asynchronous("direct, async", clients[1], runner),
        ]
