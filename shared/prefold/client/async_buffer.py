"""Pipelined appends for asyncio: while one request is under way, the turns that come go together in the next."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from prefold.client.buffering import (
    MOST_KEPT,
    MOST_WAITING,
    Waiting,
    WaitingTurns,
    answers_of,
    closed_buffer,
    is_one_by_one,
    stops,
)
from prefold.client.results import Appended, JsonObject

Publish = Callable[[Sequence[JsonObject]], Awaitable[Appended]]


class AsyncTicket:
    """One published turn; awaiting it gives its answer or raises why there is none. May be awaited again."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._is_heard = False

    def __await__(self) -> Generator[Any, None, Appended]:
        self._is_heard = True
        return asyncio.shield(self._answer).__await__()  # whoever stops waiting does not take the turn back

    @property
    def done(self) -> bool:
        """Whether the answer is there."""
        return self._answer.done()

    @property
    def is_owed(self) -> bool:
        """No answer yet, or an error that nobody has heard."""
        return not self._answer.done() or (not self._is_heard and self.failure() is not None)

    def failure(self) -> Exception | None:
        """The error that it ended with; None while it has none."""
        error = self._answer.exception() if self._answer.done() else None
        return error if isinstance(error, Exception) else None

    def settle(self, answer: Appended | Exception) -> None:
        """Put the answer in; the buffer's part."""
        if isinstance(answer, Exception):
            self._answer.set_exception(answer)
            self._answer.exception()  # heard: ``flush`` raises it when nobody awaits it
        else:
            self._answer.set_result(answer)

    def unheard(self) -> BaseException | None:
        """The error that nobody has awaited."""
        if self._is_heard or not self._answer.done():
            return None
        self._is_heard = True
        return self._answer.exception()


class AsyncAppendBuffer:
    """Appends to one session, in order. ``append`` returns at once; each turn's own errors come out of its ticket.

    A refused turn (bad content, a conflict) fails alone, and those behind it are stored. After an outage that outlasts
    the retries, and after what says nothing of one turn alone, all that waited fails with it, so that no turn overtakes
    another. ``flush`` and ``aclose`` wait for
    all of it, and raise the first error that nobody has awaited.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._waiting: WaitingTurns[AsyncTicket] = WaitingTurns()
        self._tickets: list[AsyncTicket] = []
        self._sending: asyncio.Task[None] | None = None
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.aclose()
            return
        self._is_closed = True
        await self._drain()  # what was appended is published; the error of the block is the one to hear of

    def append(
        self,
        role: str,
        content: str | Sequence[Mapping[str, Any]] | None,
        *,
        id: str | None = None,  # noqa: A002  # the API's own word
        **members: Any,
    ) -> AsyncTicket:
        """Publish a turn (members as of ``AsyncPrefold.append``) behind those before it."""
        return self.add({"id": id, "role": role, "content": content, **members})

    def add(self, turn: Mapping[str, Any]) -> AsyncTicket:
        """The same for a turn as a mapping. OverloadedError (buffer_full): 10,000 wait already."""
        if self._is_closed:
            raise closed_buffer()
        ticket = AsyncTicket()
        self._waiting.add(turn, ticket)
        self._tickets.append(ticket)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())
        return ticket

    async def flush(self) -> None:
        """Returns once everything appended so far is answered."""
        await self._drain()
        tickets, self._tickets = self._tickets, []
        for error in [ticket.unheard() for ticket in tickets]:
            if error is not None:
                raise error

    async def aclose(self) -> None:
        """Flush, and take no more. Twice is legal."""
        self._is_closed = True
        await self.flush()

    async def _drain(self) -> None:
        if self._sending is not None:
            await asyncio.shield(self._sending)

    async def _send(self) -> None:
        while self._waiting:
            await self._send_together(self._waiting.take())
            if len(self._tickets) > MOST_KEPT:  # nobody flushes
                self._tickets = [one for one in self._tickets if one.is_owed][:MOST_WAITING]

    async def _send_together(self, batch: list[Waiting[AsyncTicket]]) -> None:
        try:
            answers = answers_of(await self._publish([one.turn for one in batch]), len(batch))
        except asyncio.CancelledError:
            self._fail([*batch, *self._waiting.take_all()], ConnectionAbortedError("publishing was cancelled"))
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, it is for the callers of these turns to hear
            await self._without_answer(batch, error)
            return
        for one, answer in zip(batch, answers, strict=True):
            one.ticket.settle(answer)

    async def _without_answer(self, batch: list[Waiting[AsyncTicket]], error: Exception) -> None:
        if is_one_by_one(error, len(batch)):
            for number, one in enumerate(batch):
                await self._send_together([one])
                failed = one.ticket.failure()
                if failed is not None and stops(failed):
                    self._fail(batch[number + 1 :], failed)
                    return
            return
        self._fail(batch, error)
        if stops(error):
            self._fail(self._waiting.take_all(), error)

    def _fail(self, turns: list[Waiting[AsyncTicket]], error: Exception) -> None:
        for one in turns:
            one.ticket.settle(error)
