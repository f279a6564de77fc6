"""The append script on a real server: order, repeats, tool rounds, system turns, limits."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from prefold.errors import ConflictError, InvalidInputError, NotFoundError, TooLargeError, UnavailableError
from prefold.storage import Sessions, connect_sessions, limits
from prefold.storage.scripts import script
from prefold.storage.types import SessionOptions
from tests.support.redis import RunningRedis
from tests.support.storage import (
    SESSION,
    TENANT,
    append,
    begin,
    blocks_of,
    call,
    fragments,
    results,
    summary,
    texts_of,
    turn,
)


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


def kinds(blocks: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [f"{role[0]}:{block['type']}" for role, block in blocks]


async def test_turns_are_numbered_kept_verbatim_and_served_in_order(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Hello", id="a", ts="2026-01-01T00:00:00", name="Ann"))
    answer = await append(
        sessions, turn("assistant", [{"type": "text", "text": "Hi"}], id="b"), turn("user", "Ok", id="c")
    )
    assert [one.seq for one in answer.turns] == [2, 3]
    log = [orjson.loads(one.verbatim_json) for one in await sessions.read_turns(TENANT, SESSION, 0, 500)]
    assert log == [
        {"seq": 1, "role": "user", "content": "Hello", "id": "a", "ts": "2026-01-01T00:00:00", "name": "Ann"},
        {"seq": 2, "role": "assistant", "content": [{"type": "text", "text": "Hi"}], "id": "b"},
        {"seq": 3, "role": "user", "content": "Ok", "id": "c"},
    ]
    assert await texts_of(sessions) == ["Hello", "Hi", "Ok"]


async def test_a_repeated_id_with_the_same_content_is_a_duplicate_and_changes_nothing(sessions: Sessions) -> None:
    first = await append(sessions, turn("user", "Hello", id="a"))
    before = await sessions.read_context(TENANT, SESSION)
    again = await append(sessions, turn("user", "Hello", id="a"))
    assert (again.turns[0].seq, again.turns[0].duplicate) == (first.turns[0].seq, True)
    assert again.tokens == first.tokens
    assert (await sessions.read_context(TENANT, SESSION)).body == before.body


async def test_a_repeated_id_with_other_content_is_refused_and_the_whole_batch_with_it(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Hello", id="a"))
    before = await sessions.read_context(TENANT, SESSION)
    with pytest.raises(ConflictError, match="'a'") as refused:
        await append(sessions, turn("user", "New", id="b"), turn("user", "Other", id="a"))
    assert refused.value.code == "turn_conflict"
    assert await sessions.read_context(TENANT, SESSION) == before


async def test_an_id_twice_in_one_batch_is_one_turn(sessions: Sessions) -> None:
    answer = await append(sessions, turn("user", "x", id="a"), turn("user", "x", id="a"), turn("user", "y", id="b"))
    assert [(one.seq, one.duplicate) for one in answer.turns] == [(1, False), (1, True), (2, False)]


async def test_parallel_calls_stay_one_round_and_results_stand_in_call_order(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Check both"), call("A", "B"), results("B", "A"))
    assert [block.get("tool_use_id") for _, block in (await blocks_of(sessions))[-2:]] == ["A", "B"]


async def test_calls_published_one_by_one_before_any_result_are_one_round(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Go"), call("A"), call("B"), results("A"), results("B"))
    assert kinds(await blocks_of(sessions))[-2:] == ["u:tool_result", "u:tool_result"]
    assert (await sessions.read_context(TENANT, SESSION)).open_calls == ()


async def test_an_unanswered_call_is_open_until_a_plain_turn_closes_it_with_a_marker(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Go"), call("A", "B"), results("A"))
    assert (await sessions.read_context(TENANT, SESSION)).open_calls == ("B",)
    await append(sessions, turn("user", "Never mind"))
    blocks = await blocks_of(sessions)
    assert kinds(blocks)[-3:] == ["u:tool_result", "u:tool_result", "u:text"]
    assert "No result" in blocks[-2][1]["content"]
    assert (await sessions.read_context(TENANT, SESSION)).open_calls == ()


async def test_a_late_result_becomes_text_that_names_its_call(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Go"), call("A"), turn("user", "Never mind"), results("A", body="late news"))
    texts = await texts_of(sessions)
    assert "A" in texts[-2] and texts[-1] == "late news"


async def test_words_beside_a_result_close_the_calls_that_are_still_open(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Go"), call("A", "B"), results("A", text="and stop"))
    assert kinds(await blocks_of(sessions))[-3:] == ["u:tool_result", "u:tool_result", "u:text"]


async def test_a_second_result_for_one_call_is_text(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Go"), call("A"), results("A"), results("A", body="again"))
    assert kinds(await blocks_of(sessions))[-2:] == ["u:text", "u:text"]


async def test_a_call_id_that_comes_again_gets_an_id_of_its_own_and_its_result_finds_it(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Go"), call("A"), results("A"), call("A"), results("A"))
    blocks = [block for _, block in await blocks_of(sessions)]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert len(set(calls)) == 2
    assert calls == answers


async def test_a_conversation_that_begins_with_a_result_or_the_assistant_is_opened_by_a_user_message(
    sessions: Sessions,
) -> None:
    await append(sessions, results("Z"), session="results-first")
    await append(sessions, turn("assistant", "Welcome!"), session="assistant-first")
    assert (await fragments(sessions, "results-first"))[0].role == "user"
    first, second = await fragments(sessions, "assistant-first")
    assert (first.role, first.part, second.role) == ("user", "opener", "assistant")


async def test_leading_system_turns_go_to_the_system_prompt_and_later_ones_are_marked_user_text(
    sessions: Sessions,
) -> None:
    await append(sessions, turn("system", "Be brief."), turn("developer", "Be kind."), turn("user", "Hi"))
    await append(sessions, turn("system", "The user is now verified."))
    read = await sessions.read_context(TENANT, SESSION)
    assert read.system == "Be brief.\n\nBe kind."
    assert read.system_tokens > 0
    assert (await texts_of(sessions))[-1].endswith("The user is now verified.")


async def test_a_leading_system_turn_that_the_backend_registered_already_stands_once(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(system='Say "hi".', system_tokens=5))
    await append(sessions, turn("system", 'Say "hi".'), turn("user", "Hi"))
    assert (await sessions.read_context(TENANT, SESSION)).system == 'Say "hi".'


async def test_an_unknown_session_is_not_found(sessions: Sessions) -> None:
    with pytest.raises(NotFoundError):
        await sessions.read_context(TENANT, "nobody")
    with pytest.raises(NotFoundError):
        await sessions.view(TENANT, "nobody")


async def test_a_user_is_set_once(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(user="ann"))
    await sessions.open(TENANT, SESSION, SessionOptions(user="ann", model="m"))
    with pytest.raises(ConflictError) as refused:
        await sessions.open(TENANT, SESSION, SessionOptions(user="bob"))
    assert refused.value.code == "user_conflict"


async def test_system_and_tools_that_leave_no_room_are_refused_whole(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=2000, system="ok", system_tokens=10))
    with pytest.raises(InvalidInputError, match="1400 tokens"):
        await sessions.open(TENANT, SESSION, SessionOptions(system="long", system_tokens=1500))
    assert (await sessions.view(TENANT, SESSION)).system == "ok"


async def test_a_lower_limit_takes_effect_at_once_and_a_higher_one_brings_the_window_back(sessions: Sessions) -> None:
    said = [turn("user" if i % 2 else "assistant", f"{i} " + "word " * 100) for i in range(1, 31)]
    await append(sessions, *said)
    whole = await texts_of(sessions)
    lowered = await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=1500))
    assert lowered.degraded and lowered.tokens <= 1500
    raised = await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=50_000))
    assert not raised.degraded
    assert await texts_of(sessions) == whole


async def test_a_turn_larger_than_the_limit_is_kept_whole_and_served_short(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=1000))
    text = "alpha " + "word " * 5000 + "omega"
    answer = await append(sessions, turn("user", text))
    assert answer.status == "degraded" and answer.tokens <= 1000
    (served,) = await texts_of(sessions)
    assert served.startswith("alpha") and served.endswith("omega")
    (stored,) = await sessions.read_turns(TENANT, SESSION, 0, 10)
    assert orjson.loads(stored.verbatim_json)["content"] == text


async def test_a_round_too_large_for_the_limit_gives_way_and_its_results_come_as_text(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=1000))
    many = [f"call_{i:04d}_{'x' * 40}" for i in range(60)]
    await append(sessions, turn("user", "Do all of it"), call(*many))
    assert (await sessions.view(TENANT, SESSION)).tokens <= 1000
    await append(sessions, results(many[0]), turn("user", "And?"))
    view = await sessions.view(TENANT, SESSION)
    assert view.tokens <= 1000
    assert all(block["type"] == "text" for _, block in await blocks_of(sessions))
    whole = await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=100_000))
    blocks = [block for _, block in await blocks_of(sessions)]
    assert not whole.degraded
    assert [b["id"] for b in blocks if b["type"] == "tool_use"] == [
        b["tool_use_id"] for b in blocks if b["type"] == "tool_result"
    ]


async def test_the_first_and_the_newest_user_message_survive_the_ladder(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=2000))
    await append(sessions, turn("user", "FIRST I am allergic to nuts"))
    for i in range(40):
        await append(sessions, turn("assistant", f"{i} " + "word " * 60), turn("user", f"newest {i}"))
        await append(sessions, call("A", q="x " * 100), results("A", body="line " * 200))
        texts = await texts_of(sessions)
        assert any("allergic to nuts" in text for text in texts)
        assert f"newest {i}" in texts


async def test_usage_above_our_count_raises_the_calibration_and_shrinks_the_context(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=4000))
    await append(sessions, *[turn("user" if i % 2 else "assistant", "word " * 120) for i in range(1, 25)])
    before = await sessions.view(TENANT, SESSION)
    await append(sessions, turn("assistant", "ok", usage={"input_tokens": 2 * before.tokens, "output_tokens": 5}))
    after = await sessions.view(TENANT, SESSION)
    assert after.calibration == pytest.approx(1.5, rel=0.01)  # by half at most at a time
    assert after.degraded and after.tokens <= 4000


async def test_a_swap_inside_an_append_shows_in_its_answer_once(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=4000, soft_ratio=0.7))
    answer = await append(sessions, turn("user", "word " * 100))
    while answer.status == "ok":
        answer = await append(sessions, turn("assistant", "word " * 100), turn("user", "word " * 100))
    ticket = await begin(sessions, answer.ref)
    assert (await sessions.commit_build(ticket, summary())).outcome == "standby"
    while not answer.swapped_now:
        answer = await append(sessions, turn("assistant", "word " * 100), turn("user", "word " * 100))
        assert answer.tokens <= 4000
    assert answer.status == "swapped" and answer.swaps == 1
    assert (await append(sessions, turn("user", "more"))).status == "ok"
    assert (await texts_of(sessions))[:2] == ["FIRST", "SUMMARY"]


@pytest.mark.parametrize(
    "ids",
    [["x" * 48 + "-first", "x" * 48 + "-second"], ["a", "a_6"]],
    ids=["alike at their beginning", "one like the other's new name"],
)
async def test_call_ids_stay_distinct_however_they_repeat(sessions: Sessions, ids: list[str]) -> None:
    await append(sessions, turn("user", "Go"), call(*ids), results(*ids), turn("user", "Again"))
    await append(sessions, turn("user", "Now"), call(*ids), results(*ids), call(*ids), results(*ids))
    blocks = [block for _, block in await blocks_of(sessions)]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len(set(calls)) == len(calls) == 6
    assert calls == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


async def test_usage_of_a_read_before_a_swap_teaches_nothing(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=8000, keep_recent_turns=2))
    answer = await append(sessions, turn("user", "word " * 100))
    while answer.status == "ok":
        answer = await append(sessions, turn("assistant", "word " * 100), turn("user", "word " * 100))
    await sessions.commit_build(await begin(sessions, answer.ref), summary(tokens=2500))
    before = answer.tokens
    while not answer.swapped_now:
        before = answer.tokens
        answer = await append(sessions, call("A", q="word " * 100), results("A", body="word " * 100))
    reported = {"input_tokens": before, "output_tokens": 5}
    await append(sessions, turn("assistant", "done", usage=reported))
    assert (await sessions.view(TENANT, SESSION)).calibration == 1.0


async def test_another_system_prompt_of_the_same_length_is_another_version(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(system="Be brief.", system_tokens=3))
    before = (await sessions.view(TENANT, SESSION)).version
    same = await sessions.open(TENANT, SESSION, SessionOptions(system="Be brief.", system_tokens=3))
    other = await sessions.open(TENANT, SESSION, SessionOptions(system="Be quick.", system_tokens=3))
    assert (same.version, other.version) == (before, before + 1)
    led = await append(sessions, turn("system", "And kind."))
    assert led.version == before + 2
    header = (await sessions.read_context(TENANT, SESSION)).body.split(b"\n")[0]
    assert orjson.loads(header)["version"] == led.version


async def test_a_user_who_becomes_known_later_makes_the_turns_due_for_embedding_again(sessions: Sessions) -> None:
    answer = await append(sessions, turn("user", "Hello"))
    await sessions.mark_embedded(answer.ref, 1, "turns_x_3")
    await sessions.open(TENANT, SESSION, SessionOptions(user="ann"))
    assert await sessions.embedded_to(answer.ref, "turns_x_3") == 0
    assert "embed" in {item.kind for item in await sessions.due_sets.due(4_000_000_000_000, 10)}


async def test_the_head_stays_beside_a_round_that_is_too_large(sessions: Sessions) -> None:
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=2000))
    answer = await append(sessions, turn("user", "word " * 100))
    while answer.status == "ok":
        answer = await append(sessions, turn("assistant", "word " * 100), turn("user", "word " * 100))
    await sessions.commit_build(await begin(sessions, answer.ref), summary())
    while not answer.swapped_now:
        answer = await append(sessions, turn("assistant", "word " * 100))
    await append(sessions, turn("user", "Do all of it"), call(*[f"call_{i:04d}_{'x' * 40}" for i in range(120)]))
    parts = [line.part for line in await fragments(sessions)]
    assert parts == ["first_message", "summary", "task", "gap"]
    assert (await sessions.view(TENANT, SESSION)).tokens <= 2000


async def test_a_context_that_would_outgrow_a_redis_string_is_refused_before_anything_is_stored(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_CONTEXT_BYTES", 20_000)
    script.cache_clear()
    try:
        await append(sessions, turn("user", "word " * 1000))
        before = await sessions.read_context(TENANT, SESSION)
        with pytest.raises(TooLargeError) as refused:
            await append(sessions, turn("user", "a"), turn("assistant", "word " * 4000))
        assert refused.value.code == "context_too_large"
        assert await sessions.read_context(TENANT, SESSION) == before
        assert (await append(sessions, turn("user", "a"))).turns[0].seq == 2
    finally:
        script.cache_clear()


async def test_a_full_store_is_said_to_be_full_and_nothing_is_stored_half(
    sessions: Sessions, redis_server: RunningRedis
) -> None:
    await append(sessions, turn("user", "Hello"))
    await sessions.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(UnavailableError) as refused:
            await append(sessions, turn("user", "more"))
        assert refused.value.code == "store_full" and refused.value.retry_after is not None
        assert await texts_of(sessions) == ["Hello"]
    finally:
        await sessions.client.config_set("maxmemory", 0)


async def test_an_append_of_nothing_is_refused_and_makes_no_session(sessions: Sessions) -> None:
    with pytest.raises(InvalidInputError, match="no turn"):
        await sessions.append(TENANT, SESSION, [])
    with pytest.raises(NotFoundError):
        await sessions.view(TENANT, SESSION)
