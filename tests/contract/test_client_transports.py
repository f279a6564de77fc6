"""The client behaves alike whatever it is connected to: a gateway over HTTP, or Redis itself; blocking or asyncio."""

import itertools
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from prefold.client import Appended, State
from prefold.errors import ConflictError, InvalidInputError, NotFoundError, PrefoldError, UnsupportedError
from tests.support.gateway_thread import gateway_thread
from tests.support.odd_turns import ODD_TURNS
from tests.support.redis import endless_keys, running_redis
from tests.support.transports import Way, all_ways

WAYS = range(4)


@pytest.fixture(scope="module")
def ways() -> Iterator[list[Way]]:
    with running_redis() as redis, gateway_thread(redis.url) as gateway, all_ways(gateway, redis.url) as found:
        yield found
        assert endless_keys(redis.url) == []


@pytest.fixture(params=WAYS, ids=["http", "http-async", "direct", "direct-async"])
def way(ways: list[Way], request: pytest.FixtureRequest) -> Way:
    chosen: Way = ways[request.param]
    return chosen


@pytest.fixture
def session() -> str:
    return f"s-{uuid.uuid4().hex}"


@contextmanager
def refused(kind: type[PrefoldError], code: str, field: str | None = None) -> Iterator[None]:
    with pytest.raises(PrefoldError) as caught:
        yield
    assert (type(caught.value), caught.value.code, caught.value.field) == (kind, code, field)


def test_a_turn_is_numbered_stored_and_served(way: Way, session: str) -> None:
    first = way.call("append", session, "user", "Hello", id="a")
    second = way.call("append", session, "assistant", "How can I help?")

    assert isinstance(first, Appended)
    assert [(turn.id, turn.seq, turn.duplicate) for turn in first.turns] == [("a", 1, False)]
    assert (second.turns[0].seq, second.context.status, second.durability) == (2, "ok", "fast")
    context = way.call("context", session)
    assert context.anthropic()["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "How can I help?"}]},
    ]
    assert context.tokens == second.context.tokens
    openai = way.call("context", session, format="openai").openai()
    assert [message["content"] for message in openai["messages"]] == ["Hello", "How can I help?"]


def test_what_one_publishes_is_a_duplicate_for_all_others(ways: list[Way], session: str) -> None:
    published = ways[0].call("append_many", session, ODD_TURNS)
    assert [turn.duplicate for turn in published.turns] == [False] * len(ODD_TURNS)

    for way in ways[1:]:
        again = way.call("append_many", session, ODD_TURNS)
        assert [(turn.seq, turn.duplicate) for turn in again.turns] == [(n + 1, True) for n in range(len(ODD_TURNS))], (
            way.name
        )


def test_what_is_published_directly_is_a_duplicate_over_http(ways: list[Way], session: str) -> None:
    ways[2].call("append_many", session, ODD_TURNS)

    assert all(turn.duplicate for turn in ways[0].call("append_many", session, ODD_TURNS).turns)


def test_other_content_under_a_known_id_is_a_conflict(ways: list[Way], session: str) -> None:
    ways[0].call("append", session, "user", "Hello", id="a")

    for way in ways:
        with refused(ConflictError, "turn_conflict"):
            way.call("append", session, "user", "Goodbye", id="a")


def test_contexts_sessions_turns_and_states_are_the_same_for_all(ways: list[Way], session: str) -> None:
    options: dict[str, Any] = {"user": f"u-{session}", "model": "claude-haiku-5-5", "hard_limit_tokens": 3000}
    options |= {"system": "Be kind.", "tools": [{"name": "look"}], "metadata": {"a": [1.5, None]}, "soft_ratio": 0.5}
    options |= {"shared_prefix": {"enabled": True, "cache": "1h"}, "close_after_seconds": 0, "state_cap_tokens": 400}
    ways[3].call("create_session", session, **options)
    ways[2].call("append_many", session, ODD_TURNS)
    ways[3].call("put_state", session, {"goal": "Ship", "plan": [{"step": "Pack", "done": True}]})

    reads: list[tuple[str, dict[str, Any]]] = [
        ("session", {}),
        ("state", {}),
        ("turns", {}),
        ("turns", {"after_seq": 3, "limit": 2}),
        ("context", {}),
        ("context", {"format": "openai"}),
        ("context", {"budget_tokens": 1000}),
        ("context", {"cache": "1h"}),
    ]
    for method, asked in reads:
        first, *others = [way.call(method, session, **asked) for way in ways]
        for other in others:
            assert other == first, (method, asked)
    shown = ways[0].call("session", session)
    assert (shown.model, shown.metadata, shown.close_after_seconds) == ("claude-haiku-5-5", {"a": [1.5, None]}, 0)
    assert ways[0].call("context", session, budget_tokens=1000).left_out


def test_options_given_through_one_are_kept_when_another_gives_more(ways: list[Way]) -> None:
    for first, second in itertools.permutations([ways[0], ways[3]], 2):
        session = f"s-{uuid.uuid4().hex}"
        first.call("create_session", session, hard_limit_tokens=5000, soft_ratio=0.6)
        after = second.call("create_session", session, keep_recent_turns=2, soft_ratio="adaptive", proposals="apply")
        assert (after.hard_limit_tokens, after.keep_recent_turns, after.proposals) == (5000, 2, "apply")
        assert after.soft_threshold is not None
        assert after.soft_threshold.adaptive


BAD_TURNS: list[tuple[Any, type[PrefoldError], str, str | None]] = [
    ({"role": "robot", "content": "x"}, InvalidInputError, "invalid_input", "turns[0].role"),
    ({"role": "user", "content": "  "}, InvalidInputError, "empty_content", "turns[0].content"),
    ({"role": "user", "content": "x", "colour": "red"}, InvalidInputError, "unknown_member", "turns[0].colour"),
    (
        {"role": "user", "content": [{"type": "nonsense"}]},
        InvalidInputError,
        "unsupported_block",
        "turns[0].content[0].type",
    ),
    ({"role": "user", "content": {1, 2}}, InvalidInputError, "invalid_input", None),
    ({"id": "x" * 300, "role": "user", "content": "x"}, InvalidInputError, "invalid_id", "turns[0].id"),
]


@pytest.mark.parametrize(("turn", "kind", "code", "field"), BAD_TURNS)
def test_a_turn_that_cannot_be_stored_is_refused_alike(
    ways: list[Way], session: str, turn: Any, kind: type[PrefoldError], code: str, field: str | None
) -> None:
    for way in ways:
        with refused(kind, code, field):
            way.call("append_many", session, [turn])
        with refused(NotFoundError, "session_not_found"):
            way.call("session", session)


def test_what_no_unicode_text_has_is_mended_as_at_the_door(ways: list[Way], session: str) -> None:
    """A gateway is sent the escapes of JSON by other clients: what it makes of them is what all four store."""
    content = [{"type": "text", "text": "a \ud800 b \udfff\udfff, a pair \ud83d\ude00, NUL \x00", "\udfff": 1}]
    turn = {"id": "a", "role": "user", "content": content, "metadata": {"\ud800": "\ud800"}}
    sent = httpx.post(
        f"{ways[0].client.url}/v1/sessions/{session}/turns",
        content=json.dumps(turn),
        headers={"Content-Type": "application/json"},
    )
    assert sent.status_code == 201

    for way in ways:
        assert way.call("append_many", session, [turn]).turns[0].duplicate, way.name
        way.call("append", session, "user", f"lone \ud800 by {way.name}")
        assert way.call("turns", session)[-1]["content"] == f"lone \ufffd by {way.name}"
    for way in ways[:2]:
        assert way.call("context", session, query="lone \ud800").messages
        way.call("add_fact", "ann", "lives_in", "Riga\ud800")


def test_what_is_asked_wrongly_is_refused_alike(ways: list[Way], session: str) -> None:
    ways[0].call("create_session", session, user="ann", hard_limit_tokens=1000)
    asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("append_many", (session, [{"role": "user", "content": "x"}] * 101), {}),
        ("append_many", (session, []), {}),
        ("append", ("not a name", "user", "x"), {}),
        ("append", (session, "user", "x" * 1_100_000), {}),
        ("context", (session,), {"budget_tokens": 1}),
        ("context", (session,), {"format": "openai", "cache": "5m"}),
        ("context", (session,), {"format": "gemini"}),
        ("context", ("nobody",), {}),
        ("turns", (session,), {"limit": 0}),
        ("turns", ("nobody",), {}),
        ("state", ("nobody",), {}),
        ("create_session", (session,), {"hard_limit_tokens": 5}),
        ("create_session", (session,), {"hard_limit_tokens": "many"}),
        ("create_session", (session,), {"soft_ratio": 2}),
        ("create_session", (session,), {"user": "bob"}),
        ("create_session", (session,), {"user": "no name"}),
        ("create_session", (session,), {"model": ""}),
        ("create_session", (session,), {"tools": "look"}),
        ("create_session", (session,), {"system": "word " * 2000}),
        ("create_session", (session,), {"shared_prefix": {"cache": "5m", "thinking": {}}}),
        ("create_session", (session,), {"shared_prefix": {"enabled": True, "tool_choice": {"type": "any"}}}),
        ("put_state", (session, {"goal": 7}), {}),
        ("put_state", (session, {"mood": "good"}), {}),
        ("put_state", (session, {"plan": [{"done": True}]}), {}),
        ("put_state", (session, {"constraints": ["ok", " "]}), {}),
        ("put_state", (session, {"goal": "word " * 700}), {}),
        ("put_state", (session, {"goal": "x"}), {"if_version": 9}),
        ("patch_state", (session, {"decisions": "none"}), {}),
        ("put_state", ("nobody", {"goal": "x"}), {}),
    ]
    for method, arguments, options in asked:
        found = [_refusal(way, method, arguments, options) for way in ways]
        assert len(set(found)) == 1, (method, options, dict(zip([way.name for way in ways], found, strict=True)))


def _refusal(way: Way, method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[str, str]:
    """The public kind of the error and its code."""
    with pytest.raises(PrefoldError) as caught:
        way.call(method, *arguments, **options)
    kind = next(one for one in type(caught.value).__mro__ if one.__module__ == "prefold.errors")
    return kind.__name__, caught.value.code


def test_an_erased_session_stays_gone_until_it_is_put(ways: list[Way], session: str) -> None:
    ways[3].call("append", session, "user", "Hello", id="a")
    receipt = ways[0].call("erase_session", session)
    assert (receipt.turns, receipt.keys_left, receipt.vectors_left) == (1, 0, 0)

    for way in ways:
        for method, arguments in (("append", ("user", "Again")), ("context", ()), ("state", ()), ("session", ())):
            assert _refusal(way, method, (session, *arguments), {}) == ("GoneError", "session_erased")
    ways[2].call("create_session", session)
    assert ways[1].call("append", session, "user", "Again", id="a").turns[0].seq == 1


def test_a_state_is_replaced_patched_and_guarded_by_its_version(way: Way, session: str) -> None:
    way.call("create_session", session)
    first = way.call("put_state", session, {"goal": "Ship", "entities": {"order": "LF-1"}})
    assert isinstance(first, State)
    assert (first.version, first.state) == (1, {"goal": "Ship", "entities": {"order": "LF-1"}})

    patched = way.call("patch_state", session, {"goal": None, "entities": {"city": "Graz"}}, if_version=1)
    assert (patched.version, patched.state) == (2, {"entities": {"order": "LF-1", "city": "Graz"}})
    with refused(ConflictError, "version_conflict", "if-match"):
        way.call("put_state", session, {"goal": "Late"}, if_version=1)
    assert way.call("state", session) == patched
    assert "order: LF-1" in way.call("context", session).system


def test_a_state_that_is_too_long_says_what_each_entry_takes(ways: list[Way], session: str) -> None:
    ways[0].call("create_session", session)
    told = []
    for way in ways:
        with pytest.raises(InvalidInputError) as caught:
            way.call("put_state", session, {"goal": "word " * 400, "constraints": ["short"]})
        told.append((caught.value.field, caught.value.members))

    assert told[0][1]["cap_tokens"] == 250
    assert told[1:] == told[:1] * 3


def test_pipelined_appends_keep_their_order_and_each_caller_hears_its_own(way: Way, session: str) -> None:
    turns: list[Any] = [{"id": f"t{n}", "role": "user", "content": f"turn {n}"} for n in range(150)]
    turns[70] = {"id": "bad", "role": "robot", "content": "x"}

    answers = way.publish(session, turns)

    assert isinstance(answers[70], InvalidInputError)
    kept = [answer for number, answer in enumerate(answers) if number != 70]
    assert [answer.turns[0].id for answer in kept] == [turn["id"] for turn in turns if turn["id"] != "bad"]
    assert [answer.turns[0].seq for answer in kept] == list(range(1, 150))
    assert [turn["id"] for turn in way.call("turns", session)] == [answer.turns[0].id for answer in kept]


def test_an_answer_of_a_provider_is_published_with_its_usage_in_one_call(way: Way, session: str) -> None:
    way.call("append", session, "user", "Hello")
    answer = SimpleNamespace(
        id=f"msg-{session}",
        role="assistant",
        content=[SimpleNamespace(type="text", text="Good day.", citations=None)],
        usage=SimpleNamespace(input_tokens=30, output_tokens=4, cache_read_input_tokens=0, server_tool_use=None),
        stop_reason="end_turn",
    )

    assert way.call("append_response", session, answer).turns[0].id == f"msg-{session}"
    assert way.call("append_response", session, answer).turns[0].duplicate
    (_, stored) = way.call("turns", session)
    assert stored["content"] == [{"type": "text", "text": "Good day."}]
    assert stored["usage"] == {"input_tokens": 30, "cache_read_input_tokens": 0, "output_tokens": 4}
    completion = {
        "id": f"chatcmpl-{session}",
        "choices": [{"message": {"role": "assistant", "content": "Bye.", "refusal": None, "tool_calls": None}}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43, "prompt_tokens_details": {}},
    }
    way.call("append_response", session, completion)
    assert way.call("turns", session, after_seq=2)[0]["usage"]["prompt_tokens"] == 40


def test_what_needs_a_gateway_says_so(ways: list[Way], session: str) -> None:
    for way in ways[2:]:
        way.call("append", session, "user", "Hello")
        for method, arguments, options in (
            ("context", (session,), {"query": "Hello"}),
            ("search", ("Hello",), {}),
            ("facts", ("ann",), {}),
            ("erase_session", (session,), {}),
            ("rewind", (session, 0), {}),
        ):
            with pytest.raises(UnsupportedError, match=r"over HTTP"):
                way.call(method, *arguments, **options)
