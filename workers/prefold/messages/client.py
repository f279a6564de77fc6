"""The provider's client: official SDK, none of its own patience, nothing read from the machine but our settings."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

__all__ = ["PROVIDER_URL", "Provider", "RawAnswer", "SdkProvider", "Timeouts", "connect_provider"]

PROVIDER_URL = "https://api.anthropic.com"
"""Given explicitly: without it the SDK would look for one in a profile on disk."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a call may take."""

    connect: timedelta = timedelta(seconds=5)
    read: timedelta = timedelta(seconds=120)
    """Of each read: a server that trickles passes it."""
    deadline: timedelta = timedelta(seconds=180)
    """Of the whole call."""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """A 2xx response as it came."""

    body: bytes
    headers: "httpx2.Headers"


class Provider(Protocol):
    """Sends one request. Raises the SDK's errors and ``TimeoutError`` at the deadline; never retries."""

    async def send(self, body: dict[str, Any]) -> RawAnswer: ...


class SdkProvider:
    """``Provider`` by the SDK's async client."""

    def __init__(self, client: "AsyncAnthropic", deadline: timedelta) -> None:
        self._client = client
        self._deadline_seconds = deadline.total_seconds()

    async def send(self, body: dict[str, Any]) -> RawAnswer:
        named = {name: body[name] for name in ("model", "messages", "max_tokens")}
        rest = {name: value for name, value in body.items() if name not in named}
        async with asyncio.timeout(self._deadline_seconds):
            response = await self._client.messages.with_raw_response.create(**named, extra_body=rest)
            return RawAnswer(response.http_response.content, response.headers)


@asynccontextmanager
async def connect_provider(
    *,
    api_key: str,
    base_url: str = PROVIDER_URL,
    timeouts: Timeouts | None = None,
    connections: int = 64,
    http_client: "httpx2.AsyncClient | None" = None,
) -> AsyncIterator[SdkProvider]:
    """A client that lives as long as the block. Opens nothing yet; importing the SDK takes a moment.

    ``http_client`` replaces ours, for tests in process.
    """
    import httpx2
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

    for name in ("anthropic", "httpx2", "httpcore2"):  # after the import, which heeds ANTHROPIC_LOG
        logging.getLogger(name).setLevel(logging.WARNING)  # at debug they write whole requests
    times = timeouts or Timeouts()
    timeout = httpx2.Timeout(
        connect=times.connect.total_seconds(), read=times.read.total_seconds(), write=30.0, pool=10.0
    )
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    # Neither a proxy variable of the machine nor a redirect takes key or conversation to another server.
    own = http_client or DefaultAsyncHttpxClient(
        trust_env=False, follow_redirects=False, timeout=timeout, limits=limits
    )
    async with AsyncAnthropic(
        api_key=api_key, base_url=base_url, max_retries=0, timeout=timeout, http_client=own
    ) as client:
        yield SdkProvider(client, times.deadline)
