"""The SDK's calls that branch and correct, against a gateway that speaks the documented API: both clients."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from prefold.client import AsyncPrefold, ChangedTurn, ForkOrigin, Prefold, Remains, RetryPolicy
from prefold.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.fake_gateway import FakeGateway, running_fake_gateway

Caller = Callable[..., Any]
QUICK = RetryPolicy(deadline_seconds=5, first_pause_seconds=0.001)


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_fake_gateway() as fake:
        with Prefold(fake.url) as prefold:
            prefold.append_many("chat", [{"id": f"t{n}", "role": "user", "content": f"word {n}"} for n in range(1, 5)])
        fake.requests.clear()
        yield fake


def call_blocking(url: str, call_name: str, /, *args: Any, **options: Any) -> Any:
    with Prefold(url, retry=QUICK) as client:
        return getattr(client, call_name)(*args, **options)


def call_async(url: str, call_name: str, /, *args: Any, **options: Any) -> Any:
    async def call() -> Any:
        async with AsyncPrefold(url, retry=QUICK) as client:
            return await getattr(client, call_name)(*args, **options)

    return asyncio.run(call())


@pytest.fixture(params=[call_blocking, call_async], ids=["blocking", "async"])
def call(request: pytest.FixtureRequest) -> Caller:
    caller: Caller = request.param
    return caller


def test_a_rewind_tells_what_it_took_back_and_what_remains(gateway: FakeGateway, call: Caller) -> None:
    rewound = call(gateway.url, "rewind", "chat", 1)

    assert gateway.requests == [("POST", "/v1/sessions/chat/rewind", {"to_seq": 1})]
    assert (rewound.session, rewound.to_seq, rewound.turns, rewound.head_seq) == ("chat", 1, 3, 4)
    assert (rewound.vectors_left, rewound.durability, rewound.context.status) == (0, "fast", "ok")
    assert rewound.remains == (Remains("redis append-only file", "the rewrite that was started now"),)
    assert call(gateway.url, "append", "chat", "user", "again").turns[0].seq == 5


def test_a_fork_is_a_session_that_says_where_it_began(gateway: FakeGateway, call: Caller) -> None:
    forked = call(gateway.url, "fork", "chat", "other", at_seq=2)

    assert gateway.requests == [("POST", "/v1/sessions/chat/fork", {"session": "other", "at_seq": 2})]
    assert (forked.session, forked.head_seq, forked.forked_from) == ("other", 2, ForkOrigin("chat", 2))
    assert call(gateway.url, "session", "chat").forked_from is None
    assert [turn["id"] for turn in call(gateway.url, "turns", "other")] == ["t1", "t2"]


def test_a_fork_without_a_place_sends_none(gateway: FakeGateway, call: Caller) -> None:
    assert call(gateway.url, "fork", "chat", "other").forked_from == ForkOrigin("chat", 4)
    assert gateway.requests[0][2] == {"session": "other"}


def test_a_fork_onto_a_session_that_exists_is_a_conflict(gateway: FakeGateway, call: Caller) -> None:
    with pytest.raises(ConflictError) as caught:
        call(gateway.url, "fork", "chat", "chat")

    assert caught.value.code == "session_exists"


def test_a_correction_sends_the_whole_turn_and_tells_its_revision(gateway: FakeGateway, call: Caller) -> None:
    changed = call(gateway.url, "edit_turn", "chat", "t2", "user", "corrected", name="Ann", ts="2026-01-01")

    said = {"role": "user", "content": "corrected", "name": "Ann", "ts": "2026-01-01"}
    assert gateway.requests == [("PUT", "/v1/sessions/chat/turns/t2", said)]
    assert changed.turn == ChangedTurn("t2", 2, changed.turn.tokens, 1)
    assert (changed.changed, changed.removed, changed.vectors_left) == (True, False, 0)
    assert not call(gateway.url, "edit_turn", "chat", "t2", "user", "corrected", name="Ann", ts="2026-01-01").changed


def test_an_assistants_null_content_is_sent(gateway: FakeGateway, call: Caller) -> None:
    gateway.answer = lambda *_: (404, {"code": "turn_not_found", "detail": ""})  # type: ignore[method-assign]
    with pytest.raises(NotFoundError):
        call(gateway.url, "edit_turn", "chat", "t2", "assistant", None, tool_calls=[{"id": "c"}])

    assert gateway.requests[0][2] == {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}


def test_a_removal_has_no_body_and_is_safe_to_repeat(gateway: FakeGateway, call: Caller) -> None:
    first, again = (call(gateway.url, "remove_turn", "chat", "t3") for _ in range(2))

    assert gateway.requests == [("DELETE", "/v1/sessions/chat/turns/t3", None)] * 2
    assert (first.changed, first.removed, again.changed, again.removed) == (True, True, False, True)
    assert first.remains


@pytest.mark.parametrize("name", ["remove_turn", "edit_turn"])
def test_a_turn_that_is_not_there_is_told_from_one_that_was_taken_back(
    gateway: FakeGateway, call: Caller, name: str
) -> None:
    said = ("user", "word") if name == "edit_turn" else ()
    call(gateway.url, "rewind", "chat", 3)

    with pytest.raises(NotFoundError) as missing:
        call(gateway.url, name, "chat", "t9", *said)
    with pytest.raises(ConflictError) as rewound:
        call(gateway.url, name, "chat", "t4", *said)

    assert (missing.value.code, rewound.value.code) == ("turn_not_found", "turn_rewound")


@pytest.mark.parametrize(
    ("turn_id", "segment"),
    [("a/b:c d", "a%2Fb%3Ac%20d"), ("..", "%2E%2E"), ("会话", "%E4%BC%9A%E8%AF%9D"), ("a?x#y%2F", "a%3Fx%23y%252F")],
)
def test_the_id_of_a_turn_stays_one_segment_of_the_path(
    gateway: FakeGateway, call: Caller, turn_id: str, segment: str
) -> None:
    call(gateway.url, "append", "chat", "user", "Hello", id=turn_id)

    assert call(gateway.url, "remove_turn", "chat", turn_id).turn.id == turn_id
    assert gateway.requests[-1][1] == f"/v1/sessions/chat/turns/{segment}"


@pytest.mark.parametrize("turn_id", ["", "\ud800"])
def test_an_id_that_no_path_can_carry_is_refused_here(gateway: FakeGateway, call: Caller, turn_id: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call(gateway.url, "remove_turn", "chat", turn_id)

    assert caught.value.field == "turn_id"
    assert gateway.requests == []


@pytest.mark.parametrize(
    ("name", "given"),
    [("rewind", (2,)), ("edit_turn", ("t2", "user", "new")), ("remove_turn", ("t2",))],
)
def test_a_change_whose_answer_is_lost_is_asked_for_again(
    gateway: FakeGateway, call: Caller, name: str, given: tuple[Any, ...]
) -> None:
    gateway.stores_then_drops = 1
    answer = call(gateway.url, name, "chat", *given)

    assert len(gateway.requests) == 2
    assert gateway.requests[0] == gateway.requests[1]
    assert getattr(answer, "turns", 0) == 0
    assert not getattr(answer, "changed", False)
