"""Pipelined appends for threads: while one request is under way, the turns that come go together in the next."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
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

Publish = Callable[[Sequence[JsonObject]], Appended]


class Ticket:
    """One published turn."""

    def __init__(self) -> None:
        self._answer: Future[Appended] = Future()
        self._is_heard = False

    def result(self, timeout_seconds: float | None = None) -> Appended:
        """Its answer, or why there is none. TimeoutError: not within ``timeout_seconds``; it may be asked again."""
        found = self._answer.exception(timeout_seconds)
        self._is_heard = True
        if found is not None:
            raise found
        return self._answer.result()

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
        else:
            self._answer.set_result(answer)

    def unheard(self) -> BaseException | None:
        """The error that nobody has asked for."""
        if self._is_heard or not self._answer.done():
            return None
        self._is_heard = True
        return self._answer.exception()


class AppendBuffer:
    """Appends to one session, in order; safe to share between threads. ``append`` returns at once.

    Errors as of ``AsyncAppendBuffer``. The thread that publishes lives as long as there is something to publish; the
    interpreter does not end before it is done.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._waiting: WaitingTurns[Ticket] = WaitingTurns()
        self._tickets: list[Ticket] = []
        self._changed = threading.Condition()
        self._is_sending = False
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        self._is_closed = True
        self._drain()  # what was appended is published; the error of the block is the one to hear of

    def append(
        self,
        role: str,
        content: str | Sequence[Mapping[str, Any]] | None,
        *,
        id: str | None = None,  # noqa: A002  # the API's own word
        **members: Any,
    ) -> Ticket:
        """Publish a turn (members as of ``Prefold.append``) behind those before it."""
        return self.add({"id": id, "role": role, "content": content, **members})

    def add(self, turn: Mapping[str, Any]) -> Ticket:
        """The same for a turn as a mapping. OverloadedError (buffer_full): 10,000 wait already."""
        ticket = Ticket()
        with self._changed:
            if self._is_closed:
                raise closed_buffer()
            self._waiting.add(turn, ticket)
            self._tickets.append(ticket)
            if not self._is_sending:
                self._is_sending = True
                threading.Thread(target=self._send, name="prefold-append").start()
        return ticket

    def flush(self) -> None:
        """Returns once everything appended so far is answered."""
        with self._changed:  # in one step: what another thread appends after it is not of this call
            self._changed.wait_for(lambda: not self._is_sending)
            tickets, self._tickets = self._tickets, []
        for error in [ticket.unheard() for ticket in tickets]:
            if error is not None:
                raise error

    def close(self) -> None:
        """Flush, and take no more. Twice is legal."""
        with self._changed:
            self._is_closed = True
        self.flush()

    def _drain(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_sending)

    def _send(self) -> None:
        while batch := self._next():
            self._send_together(batch)

    def _next(self) -> list[Waiting[Ticket]]:
        """The next turns; with none left the thread ends."""
        with self._changed:
            batch = self._waiting.take()
            if len(self._tickets) > MOST_KEPT:  # nobody flushes
                self._tickets = [one for one in self._tickets if one.is_owed][:MOST_WAITING]
            if not batch:
                self._is_sending = False
                self._changed.notify_all()
            return batch

    def _send_together(self, batch: list[Waiting[Ticket]]) -> None:
        try:
            answers = answers_of(self._publish([one.turn for one in batch]), len(batch))
        except Exception as error:  # noqa: BLE001  # whatever it is, it is for the callers of these turns to hear
            self._without_answer(batch, error)
            return
        for one, answer in zip(batch, answers, strict=True):
            one.ticket.settle(answer)

    def _without_answer(self, batch: list[Waiting[Ticket]], error: Exception) -> None:
        if is_one_by_one(error, len(batch)):
            for number, one in enumerate(batch):
                self._send_together([one])
                failed = one.ticket.failure()
                if failed is not None and stops(failed):
                    self._fail(batch[number + 1 :], failed)
                    return
            return
        self._fail(batch, error)
        if stops(error):
            with self._changed:
                behind = self._waiting.take_all()
            self._fail(behind, error)

    def _fail(self, turns: list[Waiting[Ticket]], error: Exception) -> None:
        for one in turns:
            one.ticket.settle(error)
