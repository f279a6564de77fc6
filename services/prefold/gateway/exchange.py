"""One request as a handler sees it: tenant, path, strict query, bounded body."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope

from prefold.errors import InvalidInputError, TooLargeError
from prefold.gateway.admission import Admission, TenantQueue
from prefold.gateway.callers import NOBODY, Caller
from prefold.gateway.problems import HttpRefusalError

_MOST_QUERY_BYTES = 16_384
_JSON_TYPE = b"application/json"
MERGE_PATCH = b"application/merge-patch+json"
_CHARSETS = (b"", b"charset=utf-8", b'charset="utf-8"')


class ClientGoneError(Exception):
    """The client hung up before its request was whole: there is nobody to answer."""


@dataclass(slots=True)
class Exchange:
    """A request that passed the door."""

    tenant: str
    path: Mapping[str, str]
    """Values of the path's parameters, decoded, not yet checked."""
    scope: Scope
    receive: Receive
    request_id: str
    caller: Caller = NOBODY
    """Who asks; ``tenant`` is theirs."""
    deadline: asyncio.Timeout | None = None
    """Of the answer; the arrival of a body does not count."""
    queue: TenantQueue | None = None
    """Where it gets its place among those that are worked on; None: it needs none."""
    admission: Admission | None = None
    entered: float | None = None
    """When it got its place."""

    @property
    def may_read(self) -> bool:
        """Whether the caller may see what is stored; a write tells others its numbers only."""
        return "read" in self.caller.scopes

    async def enter(self) -> None:
        """Waits for its place."""
        admission, queue, now = self.admission, self.queue, perf_counter()
        if admission is None or queue is None or self.entered is not None:
            return
        if not admission.try_enter(queue, now):
            await admission.enter(queue)
            now = perf_counter()
        self.entered = now

    def leave(self) -> None:
        """Gives its place to another, if it has one."""
        if self.admission is not None and self.queue is not None:
            if self.entered is not None:
                self.admission.leave(self.queue, perf_counter() - self.entered)
            self.admission.depart(self.queue)

    def header(self, name: bytes) -> bytes | None:
        """A header's value; ``None`` without it. ``name`` in lower case. Refuses one that is sent twice."""
        values = [value for key, value in self.scope["headers"] if key == name]
        if len(values) > 1:
            raise HttpRefusalError(400, "duplicate_header", "the header is sent twice", field=name.decode())
        return values[0] if values else None

    def query(self, *known: str) -> dict[str, str]:
        """Query parameters by name. Refuses (400) an unknown one, one given twice, and broken encoding."""
        raw: bytes = self.scope["query_string"]
        if not raw:
            return {}
        found: dict[str, str] = {}
        for name, value in _parse_query(raw):
            if name not in known:
                raise _malformed_query(f"unknown parameter; known here: {', '.join(known) or 'none'}", name[:100])
            if name in found:
                raise _malformed_query("the parameter is given twice", name)
            found[name] = value
        return found

    def has_tag(self, tag: str) -> bool:
        """True when the client holds this entity (If-None-Match); GET compares weakly, as HTTP wants it."""
        given = b",".join(value for key, value in self.scope["headers"] if key == b"if-none-match")
        if not given:
            return False
        held = {one.strip().removeprefix("W/") for one in given.decode("latin-1").split(",")}
        return tag in held or "*" in held

    def take_time(self, seconds: float) -> None:
        """Gives the answer so long from now, where it has less: for work that grows with the session."""
        if self.deadline is not None and (when := self.deadline.when()) is not None:
            self.deadline.reschedule(max(when, asyncio.get_running_loop().time() + seconds))

    async def body(self, *, most_bytes: int, within_seconds: float, also: tuple[bytes, ...] = ()) -> bytes:
        """The whole JSON body as bytes, once it is here and it is its turn to be worked on.

        Refuses another media type or any encoding (415), and too much (413).

        ``also``: media types that are taken beside ``application/json``.
        """
        self._check_media(also)
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > most_bytes:
            raise _too_large(most_bytes)
        left = self._stop_clock()
        try:
            async with asyncio.timeout(within_seconds):
                whole = await self._read(most_bytes)
        except TimeoutError as error:
            raise HttpRefusalError(408, "body_timeout", "the body did not arrive in time") from error
        finally:
            self._start_clock(left)
        await self.enter()  # not before: whoever sends slowly holds up nobody
        return whole

    def _stop_clock(self) -> float | None:
        if self.deadline is None or (when := self.deadline.when()) is None:
            return None
        self.deadline.reschedule(None)
        return when - asyncio.get_running_loop().time()

    def _start_clock(self, left: float | None) -> None:
        if self.deadline is not None and left is not None:
            self.deadline.reschedule(asyncio.get_running_loop().time() + left)

    async def _read(self, most_bytes: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > most_bytes:
                raise _too_large(most_bytes)
            chunks.append(chunk)
            if not message.get("more_body", False):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _check_media(self, also: tuple[bytes, ...]) -> None:
        encoding = self.header(b"content-encoding")
        if encoding is not None and encoding.strip().lower() != b"identity":
            raise HttpRefusalError(415, "unsupported_encoding", "send the body as it is", field="content-encoding")
        media, _, parameter = (self.header(b"content-type") or b"").partition(b";")
        if media.strip().lower() not in (_JSON_TYPE, *also) or parameter.strip().lower() not in _CHARSETS:
            raise HttpRefusalError(
                415, "unsupported_media_type", "the body must be application/json in UTF-8", field="content-type"
            )


def whole_number(text: str, field: str, *, least: int, most: int) -> int:
    """A query parameter as an integer within its bounds."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise InvalidInputError("must be a whole number", field=field)
    value = int(text)
    if not least <= value <= most:
        raise InvalidInputError(f"must be from {least} to {most}", field=field)
    return value


def _parse_query(raw: bytes) -> list[tuple[str, str]]:
    if len(raw) > _MOST_QUERY_BYTES:
        raise TooLargeError(f"the query is longer than {_MOST_QUERY_BYTES} bytes", field="query")
    try:
        return parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=20
        )
    except ValueError as error:  # also broken UTF-8
        raise HttpRefusalError(400, "malformed_query", "the query cannot be read") from error


def _malformed_query(detail: str, field: str) -> HttpRefusalError:
    return HttpRefusalError(400, "malformed_query", detail, field=field)


def _too_large(most_bytes: int) -> TooLargeError:
    return TooLargeError(f"the body is larger than {most_bytes} bytes")
