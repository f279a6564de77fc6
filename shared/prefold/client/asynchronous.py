"""The asyncio client."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import httpx

from prefold.client import calls
from prefold.client.answers import read
from prefold.client.async_buffer import AsyncAppendBuffer
from prefold.client.asynchronous_memory import AsyncMemory
from prefold.client.calls import Call, Lost
from prefold.client.connecting import DEFAULT_URL, client_options
from prefold.client.events import SILENCE_SECONDS, STREAM_PAUSE_SECONDS, Erased, Event, EventLines, Told
from prefold.client.reporting import turn_of
from prefold.client.results import Appended, Changed, Context, Format, Found, JsonObject, Rewound, Session, Ttl
from prefold.client.retrying import Attempts, RetryPolicy, closed_client, other_loop, unavailable
from prefold.errors import (
    GoneError,
    NotFoundError,
    OverloadedError,
    RefusedError,
    TransientError,
    UnauthenticatedError,
)

T = TypeVar("T")


class AsyncPrefold(AsyncMemory):
    """Talks to one gateway over kept-alive connections; safe to share between tasks of one event loop.

    Every call raises the errors of ``prefold.errors``: RefusedError for what is refused again,
    TransientError when the gateway could not be reached, or was not ready, within the deadline.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        retry: RetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url
        self._retry = retry or RetryPolicy()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._http = httpx.AsyncClient(transport=transport, **client_options(url, api_key))

    @classmethod
    def direct(
        cls,
        redis_url: str,
        *,
        tenant: str = "default",
        retry: RetryPolicy | None = None,
        durability: Literal["durable", "fast"] | None = None,
        build_seconds: float = 5.0,
    ) -> "AsyncPrefold":
        """A client on Redis itself, for a backend in the same trust zone: whoever has the URL can read every tenant.

        Appends, sessions, turns, states, and contexts without a query; for the rest ``UnsupportedError``. An append is
        one script. ``durability`` None: the answers tell what the store keeps; "durable": writes are refused
        (not_durable) while it keeps less. ``build_seconds``: how long a summary takes before any was measured.
        """
        from prefold.client.direct.asynchronous import DirectAsyncPrefold

        return DirectAsyncPrefold(
            redis_url, tenant=tenant, retry=retry, durability=durability, build_seconds=build_seconds
        )

    @property
    def counter(self) -> Literal["exact", "estimate"]:
        """How tokens are counted: by a gateway exactly."""
        return "exact"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give the connections back, in the loop that they were made in. Closing twice is legal."""
        if not self._http.is_closed:
            self._check_loop()
            await self._http.aclose()

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None:
                raise other_loop()
            self._loop = loop

    def _open_http(self) -> httpx.AsyncClient:
        """Raises RefusedError (client_closed, other_loop) where httpx would raise a RuntimeError, or hang."""
        if self._http.is_closed:
            raise closed_client()
        self._check_loop()
        return self._http

    async def create_session(
        self,
        session: str,
        *,
        user: str | None = None,
        model: str | None = None,
        hard_limit_tokens: int | None = None,
        soft_ratio: float | Literal["adaptive"] | None = None,
        keep_recent_turns: int | None = None,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        metadata: Mapping[str, Any] | None = None,
        shared_prefix: Mapping[str, Any] | None = None,
        close_after_seconds: int | None = None,
        state_cap_tokens: int | None = None,
        proposals: Literal["hold", "apply"] | None = None,
    ) -> Session:
        """Create a session, or change what is given of one. Optional: the first append creates it with defaults.

        ``soft_ratio`` is adaptive unless a share is given; "adaptive" gives one up again. ``shared_prefix`` says how
        the backend asks its model, so that summaries read its prompt cache; ``{}`` switches that off.
        """
        options = {
            "user": user,
            "model": model,
            "hard_limit_tokens": hard_limit_tokens,
            "soft_ratio": soft_ratio,
            "keep_recent_turns": keep_recent_turns,
            "system": system,
            "tools": tools,
            "metadata": metadata,
            "shared_prefix": shared_prefix,
            "close_after_seconds": close_after_seconds,
            "state_cap_tokens": state_cap_tokens,
            "proposals": proposals,
        }
        return await self._send(calls.create_session(session, options))

    async def session(self, session: str) -> Session:
        """The session as it stands: limits, standby, build, swaps."""
        return await self._send(calls.session_state(session))

    async def append(
        self,
        session: str,
        role: str,
        content: str | Sequence[Mapping[str, Any]] | None,
        *,
        id: str | None = None,  # noqa: A002  # the API's own word
        name: str | None = None,
        ts: str | float | None = None,
        usage: Mapping[str, Any] | None = None,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        tool_call_id: str | None = None,
    ) -> Appended:
        """Publish one turn. Publishing it again with its ``id`` changes nothing; without one it gets a random id."""
        turn = {"id": id, "role": role, "content": content, "name": name, "ts": ts, "usage": usage}
        return await self.append_many(session, [{**turn, "tool_calls": tool_calls, "tool_call_id": tool_call_id}])

    async def append_many(self, session: str, turns: Iterable[Mapping[str, Any]]) -> Appended:
        """Publish several turns in order: all are stored, or none."""
        return await self._send(calls.append(session, turns))

    async def append_response(self, session: str, response: object, *, id: str | None = None) -> Appended:  # noqa: A002
        """Publish what a model answered: the object that ``anthropic``'s or ``openai``'s client returned, or its JSON.

        Content, tool calls, the provider's id and its ``usage``, which teaches how the model counts, in one call.
        """
        turn = turn_of(response)
        return await self.append_many(session, [turn if id is None else {**turn, "id": id}])

    def buffer(self, session: str) -> AsyncAppendBuffer:
        """Pipelined appends to one session: in order, several turns in one request while another is under way."""
        return AsyncAppendBuffer(lambda turns: self.append_many(session, turns))

    async def rewind(self, session: str, to_seq: int) -> Rewound:
        """Take back every turn after ``to_seq``; 0 takes back all. Their ids cannot be published again.

        What was derived from them is void. The next turn gets the seq after the last one ever given out. Let nobody
        append meanwhile: the retry of a lost answer takes back what was published in between.
        """
        return await self._send(calls.rewind(session, to_seq))

    async def fork(self, session: str, new_session: str, *, at_seq: int | None = None) -> Session:
        """Begin ``new_session`` with the turns up to ``at_seq`` (default: all), under the same ids and seqs.

        ConflictError (session_exists) when there is a session of that name which is not this very fork; give ``at_seq``
        where turns may be appended meanwhile, or the retry of a lost answer asks for another one.
        """
        return await self._send(calls.fork(session, new_session, at_seq))

    async def edit_turn(
        self,
        session: str,
        turn_id: str,
        role: str,
        content: str | Sequence[Mapping[str, Any]] | None,
        *,
        name: str | None = None,
        ts: str | float | None = None,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        tool_call_id: str | None = None,
    ) -> Changed:
        """Replace what a turn says: all of it, so give name and ts again. Role and ids of tool calls have to stay.

        ConflictError: the turn was rewound (turn_rewound) or removed (turn_removed), or is of another shape (turn_shape).
        """
        turn = {"role": role, "content": content, "name": name, "ts": ts}
        turn |= {"tool_calls": tool_calls, "tool_call_id": tool_call_id}
        return await self._send(calls.edit_turn(session, turn_id, turn))

    async def remove_turn(self, session: str, turn_id: str) -> Changed:
        """Remove what a turn says: a marker stands in its place, and its id cannot be published again."""
        return await self._send(calls.remove_turn(session, turn_id))

    async def context(
        self,
        session: str,
        *,
        format: Format = "anthropic",  # noqa: A002  # the API's own word
        query: str | None = None,
        budget_tokens: int | None = None,
        cache: Ttl | None = None,
    ) -> Context:
        """What to send to the model now, within the session's limit and within ``budget_tokens``.

        With a ``query`` stored turns that fit it stand beside the newest user turn. ``cache`` puts breakpoints for
        Anthropic's prompt cache in, which keeps what they end for so long.
        """
        return await self._send(calls.context(session, format, query, budget_tokens, cache))

    async def turns(self, session: str, *, after_seq: int = 0, limit: int = 500) -> tuple[JsonObject, ...]:
        """One page (at most 500) of the log: turns verbatim as published, each with its ``seq``."""
        return await self._send(calls.turns(session, after_seq, limit))

    async def search(
        self,
        query: str,
        *,
        user: str | None = None,
        session: str | None = None,
        kinds: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> tuple[Found, ...]:
        """What is stored about ``query``, best first."""
        filters = {"user": user, "session": session, "kinds": kinds, "limit": limit}
        return await self._send(calls.search(query, filters))

    async def events(self, session: str) -> AsyncIterator[Event]:
        """What happens to the session's context, from now on; what stands already is told first.

        Connects again by itself, repeats nothing and misses no swap. Ends with ``Erased``. Raises as other calls do,
        TransientError when nobody answers for as long as a call may take.
        """
        told, attempts = Told(), Attempts(self._retry)
        while True:
            try:
                async with aclosing(self._listen(session, told)) as found:
                    async for event in found:
                        attempts = Attempts(self._retry)
                        if event is not None:
                            yield event
                        if isinstance(event, Erased):
                            return
                pause = STREAM_PAUSE_SECONDS
            except TransientError as error:
                pause = attempts.pause_after(error)
            except (GoneError, NotFoundError):
                if not told.has_listened:
                    raise
                yield Erased(session)
                return
            await asyncio.sleep(pause)

    async def _listen(self, session: str, told: Told) -> AsyncGenerator[Event | None, None]:
        """One connection. None: it is alive."""
        call, lines = calls.events(session), EventLines()
        timeout = httpx.Timeout(self._retry.attempt_seconds, read=SILENCE_SECONDS)
        try:
            async with self._open_http().stream(
                call.method, call.path, headers=call.headers, timeout=timeout
            ) as response:
                if not response.is_success:
                    await response.aread()
                    read(response, call.parse)
                for missed in told.connected(await self._send(calls.session_state(session))):
                    yield missed
                async for line in response.aiter_lines():
                    event = lines.feed(line)
                    yield event if event is not None and told.is_new(event) else None
        except httpx.TransportError as error:
            raise unavailable(error, self.url) from error

    async def _send(self, call: Call[T]) -> T:
        attempts, is_lost = Attempts(self._retry), False
        while True:
            try:
                return await self._attempt(call, attempts.timeout_seconds())
            except TransientError as error:
                pause = attempts.pause_after(error)
                is_lost = is_lost or not isinstance(error, OverloadedError)  # such a one was refused, not lost
            except RefusedError as error:
                lost = call.lost
                if not is_lost or lost is None or error.code != lost.code:
                    raise
                found = await self._own(lost)
                if found is None:
                    raise
                return found
            await asyncio.sleep(pause)

    async def _own(self, lost: Lost[Any, T]) -> T | None:
        """The result of our own attempt, if its answer was what was lost. None: it was not, or we may not ask."""
        try:
            return lost.result(await self._send(lost.ask))
        except UnauthenticatedError:  # a key without ``read``
            return None

    async def _attempt(self, call: Call[T], timeout_seconds: float) -> T:
        try:
            response = await self._open_http().request(
                call.method,
                call.path,
                params=call.query,
                content=call.body,
                headers=call.headers,
                timeout=timeout_seconds,
            )
        except httpx.TransportError as error:
            raise unavailable(error, self.url) from error
        return read(response, call.parse)
