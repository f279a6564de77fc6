"""``/livez``, ``/readyz`` and ``/metrics`` of a process that serves nothing else: a few GETs a minute, on its own port.

Written by hand because workers carry no HTTP server. No key is asked for: nothing here tells of a tenant, a session or
a user, and the port belongs on an inner network.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import structlog

from prefold.config.settings import ProbeSettings
from prefold.errors import ConfigurationError, PrefoldError
from prefold.telemetry.metrics import EXPOSITION_TYPE, exposition

__all__ = ["Ready", "always_ready", "is_ready", "serving_probe"]

log = structlog.get_logger(__name__)

Ready = Callable[[], Awaitable[Mapping[str, str]]]
"""Each thing that must work, and ``ok`` or what is wrong with it. Called on the loop that serves the probe."""

_READY_WITHIN_SECONDS: Final = 2.0
_HEAD_WITHIN_SECONDS: Final = 5.0
_HEAD_MOST_BYTES: Final = 8_192
_MOST_AT_ONCE: Final = 32
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: HTTPStatus
    body: bytes
    media: str = _JSON


async def always_ready() -> Mapping[str, str]:
    """For a process that is ready as soon as it runs."""
    return {}


def is_ready(checks: Mapping[str, str]) -> bool:
    """Every check is ``ok``, or ``ok: …`` with a remark."""
    return all(state == "ok" or state.startswith("ok: ") for state in checks.values())


@asynccontextmanager
async def serving_probe(settings: ProbeSettings, ready: Ready = always_ready) -> AsyncIterator[str | None]:
    """Serves the probe while the context lasts; its URL, or ``None`` where ``PREFOLD_PROBE_PORT`` is 0.

    Needs nothing but the running loop, so ``/livez`` fails when that is blocked. A ``ready`` that raises or takes more
    than two seconds makes ``/readyz`` answer 503. ``ConfigurationError``: the address cannot be had.
    """
    if settings.probe_port == 0:
        yield None
        return
    server = await _listen(settings.probe_host, settings.probe_port, _Probe(ready))
    url = _url_of(server)
    log.info("probe_ready", url=url)
    try:
        yield url
    finally:
        server.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), _READY_WITHIN_SECONDS)


async def _listen(host: str, port: int, probe: "_Probe") -> asyncio.Server:
    try:
        return await asyncio.start_server(probe.serve, host, port, limit=_HEAD_MOST_BYTES)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _url_of(server: asyncio.Server) -> str:
    host, port = server.sockets[0].getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Probe:
    def __init__(self, ready: Ready) -> None:
        self._ready = ready
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, then the connection is closed. Never raises what a client has done."""
        self._open += 1
        try:
            if self._open <= _MOST_AT_ONCE:
                async with asyncio.timeout(_HEAD_WITHIN_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                await _send(writer, head, await self._answer(head))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # too slow, too large, or gone: nobody is owed an answer
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, head: bytes) -> _Answer:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"")
        if path == b"/livez":
            return _health(True, {})
        if path == b"/readyz":
            checks = await self._checks()
            return _health(is_ready(checks), checks)
        if path == b"/metrics":
            return _Answer(HTTPStatus.OK, exposition(), EXPOSITION_TYPE)
        return _Answer(HTTPStatus.NOT_FOUND, b"")

    async def _checks(self) -> Mapping[str, str]:
        try:
            async with asyncio.timeout(_READY_WITHIN_SECONDS):
                return await self._ready()
        except TimeoutError:
            return {"checks": "do not end in time"}
        except PrefoldError as error:
            return {"checks": error.detail}
        except Exception as error:  # noqa: BLE001  # whatever a check does, the probe must answer
            return {"checks": type(error).__qualname__}


def _health(is_well: bool, checks: Mapping[str, str]) -> _Answer:
    body = json.dumps({"status": "ok" if is_well else "unready", "checks": dict(checks)}).encode()
    return _Answer(HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE, body)


async def _send(writer: asyncio.StreamWriter, head: bytes, answer: _Answer) -> None:
    lines = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.media}",
        f"Content-Length: {len(answer.body)}",
        "Connection: close",
    )
    body = b"" if head.startswith(b"HEAD") else answer.body
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    async with asyncio.timeout(_HEAD_WITHIN_SECONDS):
        await writer.drain()
