"""Append buffers: what goes out together, what stays in order, and who hears of what went wrong."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from prefold.client import AppendBuffer, Appended, AppendedTurn, AsyncAppendBuffer, ContextState, buffering
from prefold.errors import (
    ConflictError,
    InvalidInputError,
    OverloadedError,
    PrefoldError,
    UnauthenticatedError,
    UnavailableError,
)

STATE = ContextState(1, 0, 10, 10, 1000, "ok")


class Log:
    """A session that a test can hold up, take away, and make refuse a turn."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.kept: list[str] = []
        self.is_down = False
        self.refuses = ""
        self.refusal: PrefoldError = ConflictError("known with other content", code="turn_conflict")
        self.reached = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()

    def append(self, turns: Sequence[Any]) -> Appended:
        self.reached.set()
        assert self.goes_on.wait(10)
        ids = [turn["id"] for turn in turns]
        self.requests.append(ids)
        if self.is_down:
            raise UnavailableError("away", code="no_answer")
        if self.refuses in ids:
            raise self.refusal
        self.kept += ids
        placed = tuple(AppendedTurn(one, len(self.kept) - len(ids) + n + 1, 5, False) for n, one in enumerate(ids))
        return Appended(placed, STATE, "fast")

    async def append_async(self, turns: Sequence[Any]) -> Appended:
        return await asyncio.to_thread(self.append, turns)


def add(buffer: Any, *ids: str) -> list[Any]:
    return [buffer.append("user", "x", id=one) for one in ids]


def test_turns_that_come_while_a_request_is_under_way_go_out_in_the_next_one() -> None:
    log = Log()
    log.goes_on.clear()
    with AppendBuffer(log.append) as buffer:
        (first,) = add(buffer, "a")
        assert log.reached.wait(10)
        rest = add(buffer, "b", "c", "d")
        log.goes_on.set()
        assert [one.result(10).turns[0].seq for one in (first, *rest)] == [1, 2, 3, 4]

    assert log.requests == [["a"], ["b", "c", "d"]]


async def test_the_same_with_asyncio() -> None:
    log = Log()
    log.goes_on.clear()
    async with AsyncAppendBuffer(log.append_async) as buffer:
        (first,) = add(buffer, "a")
        await asyncio.to_thread(log.reached.wait, 10)
        rest = add(buffer, "b", "c", "d")
        log.goes_on.set()
        assert [(await one).turns[0].seq for one in (first, *rest)] == [1, 2, 3, 4]

    assert log.requests == [["a"], ["b", "c", "d"]]


async def test_a_refused_turn_fails_alone_and_in_its_own_ticket() -> None:
    log = Log()
    log.refuses = "b"
    buffer = AsyncAppendBuffer(log.append_async)
    tickets = add(buffer, "a", "b", "c")

    found = await asyncio.gather(*tickets, return_exceptions=True)
    await buffer.aclose()

    assert log.kept == ["a", "c"]
    assert [type(one) for one in found] == [Appended, ConflictError, Appended]


async def test_no_turn_overtakes_one_that_an_outage_kept_back() -> None:
    log = Log()
    log.goes_on.clear()
    log.is_down = True
    buffer = AsyncAppendBuffer(log.append_async)
    first = add(buffer, "a")
    await asyncio.to_thread(log.reached.wait, 10)
    behind = add(buffer, "b", "c")
    log.goes_on.set()
    found = await asyncio.gather(*first, *behind, return_exceptions=True)
    log.is_down = False
    later = add(buffer, "d")

    assert [type(one) for one in found] == [UnavailableError] * 3
    assert (await later[0]).turns[0].seq == 1
    await buffer.aclose()
    assert log.requests == [["a"], ["d"]]


@pytest.mark.parametrize("end", ["flush", "close"])
def test_an_error_that_nobody_asked_for_comes_out_of_flush_and_close(end: str) -> None:
    log = Log()
    log.is_down = True
    buffer = AppendBuffer(log.append)
    add(buffer, "a")

    with pytest.raises(UnavailableError):
        getattr(buffer, end)()
    getattr(buffer, end)()  # it has been heard


async def test_an_error_that_was_awaited_does_not_come_again() -> None:
    log = Log()
    log.is_down = True
    buffer = AsyncAppendBuffer(log.append_async)
    (ticket,) = add(buffer, "a")
    with pytest.raises(UnavailableError):
        await ticket
    await buffer.aclose()
    add_late: Callable[[], Any] = lambda: add(buffer, "b")  # noqa: E731
    with pytest.raises(InvalidInputError, match="closed"):
        add_late()


async def test_leaving_a_block_by_an_error_still_publishes_what_was_appended() -> None:
    log = Log()

    async def leave() -> None:
        async with AsyncAppendBuffer(log.append_async) as buffer:
            add(buffer, "a", "b")
            raise KeyError

    with pytest.raises(KeyError):
        await leave()
    assert log.kept == ["a", "b"]


async def test_whoever_stops_waiting_for_a_ticket_takes_no_turn_back() -> None:
    log = Log()
    log.goes_on.clear()
    buffer = AsyncAppendBuffer(log.append_async)
    (ticket,) = add(buffer, "a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ticket, 0.01)
    log.goes_on.set()

    assert (await ticket).turns[0].id == "a"
    await buffer.aclose()


def test_a_request_takes_so_many_turns_and_bytes_and_a_large_turn_goes_alone() -> None:
    waiting: buffering.WaitingTurns[None] = buffering.WaitingTurns()
    for number in range(150):
        waiting.add({"id": str(number), "role": "user", "content": "x"}, None)
    waiting.add({"id": "large", "role": "user", "content": "x" * 1_500_000}, None)
    waiting.add({"id": "last", "role": "user", "content": "x"}, None)

    sizes = []
    while taken := waiting.take():
        sizes.append((taken[0].turn["id"], len(taken)))
    assert sizes == [("0", 100), ("100", 50), ("large", 1), ("last", 1)]


def test_a_buffer_that_nobody_empties_refuses_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffering, "MOST_WAITING", 2)
    waiting: buffering.WaitingTurns[None] = buffering.WaitingTurns()
    for number in range(2):
        waiting.add({"id": str(number), "role": "user", "content": "x"}, None)
    with pytest.raises(OverloadedError) as caught:
        waiting.add({"id": "2", "role": "user", "content": "x"}, None)
    assert caught.value.code == "buffer_full"


class Released(threading.Condition):
    """Calls ``then`` once, when its lock is given back for the first time."""

    then: Callable[[], Any] | None = None

    def __exit__(self, *error: object) -> None:
        self.release()
        then, self.then = self.then, None
        if then is not None:
            then()


def test_a_turn_that_another_thread_appends_during_a_flush_is_heard_of_by_the_next_one() -> None:
    log = Log()
    log.is_down = True
    buffer = AppendBuffer(log.append)
    buffer._changed = Released()

    def meanwhile() -> None:
        log.goes_on.clear()
        add(buffer, "a")

    buffer._changed.then = meanwhile
    buffer.flush()
    log.goes_on.set()
    with pytest.raises(UnavailableError):
        buffer.flush()


async def test_an_answer_about_another_number_of_turns_fails_them_and_holds_up_nobody() -> None:
    def answer(_turns: Sequence[Any]) -> Appended:
        return Appended((), STATE, "fast")

    async def answer_async(_turns: Sequence[Any]) -> Appended:
        return answer(_turns)

    blocking, buffer = AppendBuffer(answer), AsyncAppendBuffer(answer_async)
    (first,), (second,) = add(blocking, "a"), add(buffer, "a")
    for wait in (asyncio.to_thread(first.result, 10), asyncio.wait_for(second, 10)):
        with pytest.raises(PrefoldError, match="1 turns were published") as caught:
            await wait
        assert caught.value.code == "unexpected_answer"


async def test_no_turn_overtakes_one_of_which_nobody_knows_what_became() -> None:
    log = Log()
    log.refuses, log.refusal = "b", PrefoldError("a bug of the gateway", code="internal")
    log.goes_on.clear()
    buffer = AsyncAppendBuffer(log.append_async)
    tickets = add(buffer, "first")
    await asyncio.to_thread(log.reached.wait, 10)
    tickets += add(buffer, "a", "b", "c")
    log.goes_on.set()

    found = await asyncio.gather(*tickets, return_exceptions=True)
    assert [type(one) for one in found] == [Appended, Appended, PrefoldError, PrefoldError]
    assert log.kept == ["first", "a"]


async def test_a_key_that_is_not_known_fails_all_that_waits_in_one_request() -> None:
    """It may be known a moment later: then turns behind would overtake."""
    log = Log()
    log.refuses, log.refusal = "a", UnauthenticatedError("no such key")
    log.goes_on.clear()
    buffer = AsyncAppendBuffer(log.append_async)
    tickets = add(buffer, "a")
    await asyncio.to_thread(log.reached.wait, 10)
    tickets += add(buffer, "b", "c")
    log.goes_on.set()

    found = await asyncio.gather(*tickets, return_exceptions=True)
    assert [type(one) for one in found] == [UnauthenticatedError] * 3
    assert log.requests == [["a"]]
