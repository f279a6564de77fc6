"""Edits, removals and rewinds on a real server: the log, the context, and what was derived of the changed turns."""

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from prefold.conversation import anthropic_messages, check_anthropic, check_openai, openai_messages, parse_lines
from prefold.conversation.turns import PreparedTurn
from prefold.errors import ConflictError, GoneError, InvalidInputError, NotFoundError, OverloadedError
from prefold.storage import Sessions, changes, connect_sessions, limits
from prefold.storage.keys import SessionKeys
from prefold.storage.limits import SHARED_BYTES
from prefold.storage.state import SessionState
from prefold.storage.types import AppendResult, SessionOptions
from tests.support.storage import SESSION, TENANT, append, begin, call, fragments, results, summary, texts_of, turn

WORDS = "word " * 100


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


def said(number: int, words: str = WORDS) -> PreparedTurn:
    return turn("assistant" if number % 2 == 0 else "user", f"{number} {words}", id=f"m{number}")


async def talk(sessions: Sessions, count: int, *, limit: int = 4000, first: int = 1) -> AppendResult:
    """Turns m1, m2, … of about 100 tokens."""
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=limit, keep_recent_turns=2))
    for number in range(first, first + count - 1):
        await append(sessions, said(number))
    return await append(sessions, said(first + count - 1))


async def everything_of(sessions: Sessions) -> bytes:
    """All that Redis holds of the session, as it holds it: a deleted entry of a stream still has its bytes."""
    keys = SessionKeys.of(TENANT, SESSION)
    await sessions.client.config_set("rdbcompression", "no")  # or words would not be found in what DUMP gives
    dumps = [await sessions.client.dump(key) for key in (*keys.script_keys(), keys.staged, keys.staged_ids)]
    return b"".join(dump for dump in dumps if dump)


async def state_of(sessions: Sessions) -> SessionState:
    packed = await sessions.client.hget(SessionKeys.of(TENANT, SESSION).meta, "state")
    assert isinstance(packed, bytes)
    return SessionState.unpack(packed)


async def holds(sessions: Sessions) -> None:
    """The context is valid, within its limit, and its counts are those of its lines."""
    stored, view = await sessions.read_context(TENANT, SESSION), await sessions.view(TENANT, SESSION)
    header, lines = parse_lines(stored.body)
    assert header["version"] == view.version
    assert view.tokens - view.fixed_tokens == sum(line.tokens for line in lines)
    assert view.tokens <= view.hard_limit_tokens
    if lines or stored.system:
        assert check_anthropic(anthropic_messages(lines), stored.system or None) == []
        assert check_openai(openai_messages(lines, stored.system)) == []


async def test_a_rewind_takes_back_the_turns_after_it_and_their_bytes(sessions: Sessions) -> None:
    await talk(sessions, 3)
    await append(sessions, turn("assistant", "the secret plan", id="m4"))
    assert b"secret plan" in await everything_of(sessions)
    changed = await sessions.rewind(TENANT, SESSION, 3)
    assert (changed.changed, changed.turns, changed.first_seq, changed.last_seq, changed.head_seq) == (True, 1, 4, 4, 4)
    assert [one.seq for one in await sessions.read_turns(TENANT, SESSION, 0, 10)] == [1, 2, 3]
    assert len(await texts_of(sessions)) == 3
    assert b"secret plan" not in await everything_of(sessions)
    await holds(sessions)


@pytest.mark.parametrize("words", [1, 3, 20, 300])
@pytest.mark.parametrize("kept", [1, 2, 40, 250])
@pytest.mark.parametrize("node_bytes", [4096, 8192, SHARED_BYTES])
async def test_no_byte_of_a_turn_that_was_taken_back_stays_whatever_the_sizes(
    sessions: Sessions, words: int, kept: int, node_bytes: int
) -> None:
    """Short turns share a node of the stream with up to a hundred others."""
    (before_test,) = (await sessions.client.config_get("stream-node-max-bytes")).values()
    await sessions.client.config_set("stream-node-max-bytes", node_bytes)
    try:
        await take_back(sessions, words, kept)
    finally:
        await sessions.client.config_set("stream-node-max-bytes", str(before_test))


async def take_back(sessions: Sessions, words: int, kept: int) -> None:
    """Thirty turns, and no byte of them stays."""
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=1_000_000))
    turns = [turn("user", f"<{number}>" + " w" * words, id=f"m{number}") for number in range(1, kept + 31)]
    for start in range(0, len(turns), 50):
        await append(sessions, *turns[start : start + 50])
    before = [one.verbatim_json for one in await sessions.read_turns(TENANT, SESSION, 0, 500)]
    assert f"<{kept + 1}>".encode() in await everything_of(sessions)
    await sessions.rewind(TENANT, SESSION, kept)
    left = await everything_of(sessions)
    assert not [number for number in range(kept + 1, kept + 31) if f"<{number}>".encode() in left]
    assert [one.verbatim_json for one in await sessions.read_turns(TENANT, SESSION, 0, 500)] == before[:kept]
    await append(sessions, turn("assistant", "And on."))
    await holds(sessions)


async def test_a_number_that_was_taken_back_is_not_given_out_again(sessions: Sessions) -> None:
    await talk(sessions, 3)
    await sessions.rewind(TENANT, SESSION, 1)
    answer = await append(sessions, turn("assistant", "another answer"))
    assert answer.turns[0].seq == 4
    assert [line.seq for line in await fragments(sessions)] == [1, 4]
    await holds(sessions)


async def test_a_turn_that_was_taken_back_cannot_be_published_again(sessions: Sessions) -> None:
    await talk(sessions, 4)
    await sessions.rewind(TENANT, SESSION, 2)
    for again in (said(3), turn("user", "other words", id="m4")):
        with pytest.raises(ConflictError) as refused:
            await append(sessions, again)
        assert refused.value.code == "turn_rewound"
    assert (await append(sessions, said(2))).turns[0].duplicate
    for lost in (sessions.find_turn(TENANT, SESSION, "m3"), sessions.edit_turn(TENANT, SESSION, "m3", said(3))):
        with pytest.raises(ConflictError) as refused:
            await lost
        assert refused.value.code == "turn_rewound"


async def test_a_rewind_of_many_turns_gives_what_one_of_few_gives(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one copies what stays, the other cuts off what goes."""
    outcomes = []
    for most_entries in (1000, 5):
        monkeypatch.setattr(limits, "STAGE_ENTRIES", most_entries)
        await sessions.client.flushall()
        await append(sessions, turn("user", "Look.", id="u"), call("a"), results("a"))
        for number in range(20):
            await append(sessions, said(number), call("b", f"c{number}"), results("b"))
        await sessions.rewind(TENANT, SESSION, 14)
        numbers = dict((await state_of(sessions)).numbers)
        for moving in ("created", "updated", "spoken", "ends", "flow"):
            del numbers[moving]
        outcomes.append((numbers, [one.seq for one in await sessions.read_turns(TENANT, SESSION, 0, 99)]))
        await holds(sessions)
    assert outcomes[0] == outcomes[1]


async def test_a_rewind_twice_is_one(sessions: Sessions) -> None:
    await talk(sessions, 4)
    first = await sessions.rewind(TENANT, SESSION, 2)
    again = await sessions.rewind(TENANT, SESSION, 2)
    assert (again.changed, again.turns, again.version) == (False, 0, first.version)
    assert (await sessions.view(TENANT, SESSION)).changes == 1


async def test_a_rewind_beyond_the_newest_turn_is_refused(sessions: Sessions) -> None:
    await talk(sessions, 2)
    with pytest.raises(InvalidInputError) as refused:
        await sessions.rewind(TENANT, SESSION, 3)
    assert (refused.value.code, refused.value.field) == ("seq_ahead", "to_seq")


async def test_a_rewind_to_nothing_leaves_an_empty_session_that_goes_on(sessions: Sessions) -> None:
    await append(sessions, turn("system", "Be kind."), turn("assistant", "Hello, I speak first."))
    await sessions.rewind(TENANT, SESSION, 0)
    stored = await sessions.read_context(TENANT, SESSION)
    assert (parse_lines(stored.body)[1], stored.system) == ([], "")
    await append(sessions, turn("system", "Be brief."), turn("user", "Hi"))
    stored = await sessions.read_context(TENANT, SESSION)
    assert stored.system == "Be brief."
    assert [line.part for line in parse_lines(stored.body)[1]] == [""]
    await holds(sessions)


async def test_a_rewind_to_a_call_opens_it_again(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Look it up."), call("a", "b"), results("a"), turn("user", "Never mind."))
    await sessions.rewind(TENANT, SESSION, 3)
    assert (await sessions.read_context(TENANT, SESSION)).open_calls == ("b",)
    await append(sessions, results("b"))
    assert [line.part for line in await fragments(sessions)] == ["", "", "", ""]
    await holds(sessions)


async def test_an_edit_changes_what_is_served_and_leaves_nothing_of_the_old_words(sessions: Sessions) -> None:
    await talk(sessions, 5)
    assert f"3 {WORDS}".encode() in await everything_of(sessions)
    changed = await sessions.edit_turn(TENANT, SESSION, "m3", turn("user", "better words", id="m3"))
    assert (changed.changed, changed.first_seq, changed.last_seq) == (True, 3, 3)
    found = await sessions.find_turn(TENANT, SESSION, "m3")
    assert (found.revision, orjson.loads(found.verbatim_json)["content"]) == (1, "better words")
    assert "better words" in await texts_of(sessions)
    assert f"3 {WORDS}".encode() not in await everything_of(sessions)
    await holds(sessions)


async def test_an_edit_with_the_same_words_changes_nothing(sessions: Sessions) -> None:
    await talk(sessions, 2)
    again = await sessions.edit_turn(TENANT, SESSION, "m2", said(2))
    assert (again.changed, (await sessions.view(TENANT, SESSION)).changes) == (False, 0)


async def test_a_retry_of_the_first_publication_is_a_duplicate_also_after_an_edit(sessions: Sessions) -> None:
    await talk(sessions, 2)
    await sessions.edit_turn(TENANT, SESSION, "m2", turn("assistant", "better", id="m2"))
    assert (await append(sessions, said(2))).turns[0].duplicate
    assert "better" in await texts_of(sessions)


async def test_an_edit_keeps_the_kind_and_the_role_of_a_turn(sessions: Sessions) -> None:
    await append(sessions, turn("user", "Look.", id="u"), call("a"))
    for other in (turn("assistant", "I asked.", id="u"), call("x")):
        with pytest.raises(ConflictError) as refused:
            await sessions.edit_turn(TENANT, SESSION, "u", other)
        assert refused.value.code == "turn_shape"


async def test_what_calls_and_results_say_can_be_corrected_while_their_ids_stay(sessions: Sessions) -> None:
    calls, found = call("a", "b"), results("b", "a", body="wrong")
    await append(sessions, turn("user", "Look."), calls, found, turn("user", "Thanks."))
    better = call("a", "b", text="I look again.", place="here")
    await sessions.edit_turn(TENANT, SESSION, calls.id, better)
    await sessions.edit_turn(TENANT, SESSION, found.id, results("b", "a", body="right"))
    body = (await sessions.read_context(TENANT, SESSION)).body
    assert b"I look again." in body and b"right" in body and b"wrong" not in body
    await holds(sessions)
    for other in (call("a"), call("a", "c"), call("b", "a")):
        with pytest.raises(ConflictError, match="its calls"):
            await sessions.edit_turn(TENANT, SESSION, calls.id, other)
    for other in (results("b"), results("b", "c"), results("a", "b", "c"), results("b", "a", text="and more")):
        if other.content:  # words beside results that answer everything change no round
            await sessions.edit_turn(TENANT, SESSION, found.id, other)
            continue
        with pytest.raises(ConflictError, match="its calls"):
            await sessions.edit_turn(TENANT, SESSION, found.id, other)
    await holds(sessions)


async def test_late_results_and_those_that_close_a_round_keep_their_calls(sessions: Sessions) -> None:
    late, closing = results("x", "y"), results("a", text="That is all.")
    await append(sessions, turn("user", "Look."), late, call("a", "b"), closing, turn("user", "Thanks."))
    for stored, good, bad in (
        (late, results("x", "y", body="better"), [results("x"), results("x", "z"), results("x", "y", "z")]),
        (closing, results("a", text="Better."), [results("b", text="No."), results("a", "b", text="No.")]),
    ):
        for other in bad:
            with pytest.raises(ConflictError, match="its calls"):
                await sessions.edit_turn(TENANT, SESSION, stored.id, other)
        assert (await sessions.edit_turn(TENANT, SESSION, stored.id, good)).changed
        await holds(sessions)


async def test_a_call_id_that_came_again_can_be_corrected_in_each_place(sessions: Sessions) -> None:
    rounds = [(call("a"), results("a", body=f"found {number}")) for number in range(3)]
    for calls, found in rounds:
        await append(sessions, calls, found)
    for number, (calls, found) in enumerate(rounds):
        await sessions.edit_turn(TENANT, SESSION, calls.id, call("a", text=f"asked {number}"))
        await sessions.edit_turn(TENANT, SESSION, found.id, results("a", body=f"better {number}"))
        await holds(sessions)
    body = (await sessions.read_context(TENANT, SESSION)).body
    assert body.count(b"better") == body.count(b"asked") == 3


async def test_an_edited_leading_system_turn_changes_the_system_prompt(sessions: Sessions) -> None:
    await append(
        sessions, turn("system", "Be kind.", id="s1"), turn("system", "Be brief.", id="s2"), turn("user", "Hi")
    )
    await sessions.edit_turn(TENANT, SESSION, "s1", turn("system", "Be stern.", id="s1"))
    assert (await sessions.read_context(TENANT, SESSION)).system == "Be stern.\n\nBe brief."
    await sessions.rewind(TENANT, SESSION, 1)
    assert (await sessions.read_context(TENANT, SESSION)).system == "Be stern."
    await holds(sessions)


async def test_a_removed_turn_is_gone_for_good(sessions: Sessions) -> None:
    await talk(sessions, 3)
    stand_in = turn("user", "[removed]", id="m3")
    assert said(3).digest.encode() in await everything_of(sessions)
    changed = await sessions.remove_turn(TENANT, SESSION, "m3", stand_in)
    assert changed.changed
    assert f"3 {WORDS}".encode() not in await everything_of(sessions)
    assert said(3).digest.encode() not in await everything_of(sessions)
    found = await sessions.find_turn(TENANT, SESSION, "m3")
    assert (found.removed, found.revision) == (True, 1)
    assert not (await sessions.remove_turn(TENANT, SESSION, "m3", stand_in)).changed
    for again in (append(sessions, said(3)), sessions.edit_turn(TENANT, SESSION, "m3", said(3))):
        with pytest.raises(ConflictError) as refused:
            await again
        assert refused.value.code == "turn_removed"
    await holds(sessions)


async def test_a_change_of_a_covered_turn_drops_what_was_made_of_it(sessions: Sessions) -> None:
    answer = await talk(sessions, 30)
    ticket = await begin(sessions, answer.ref)
    assert (await sessions.commit_build(ticket, summary())).outcome == "standby"
    await sessions.edit_turn(TENANT, SESSION, "m2", turn("assistant", "better", id="m2"))
    assert (await sessions.view(TENANT, SESSION)).standby is None
    assert (await sessions.commit_build(ticket, summary())).outcome == "stale"
    await holds(sessions)


async def test_a_change_after_the_cut_keeps_the_standby_and_what_follows_in_it(sessions: Sessions) -> None:
    answer = await talk(sessions, 30)
    ticket = await begin(sessions, answer.ref)
    await sessions.commit_build(ticket, summary())
    seq = ticket.covers_to + 1
    role = "assistant" if seq % 2 == 0 else "user"
    await sessions.edit_turn(TENANT, SESSION, f"m{seq}", turn(role, "better", id=f"m{seq}"))
    following = await sessions.client.get(SessionKeys.of(TENANT, SESSION).next)
    assert following is not None and b"better" in following and f"{seq} word".encode() not in following
    number = 31
    while (answer := await append(sessions, said(number))).status != "swapped":
        number += 1
    assert "better" in await texts_of(sessions)
    await holds(sessions)


async def test_a_build_under_way_survives_a_change_after_its_cut_alone(sessions: Sessions) -> None:
    answer = await talk(sessions, 30)
    ticket = await begin(sessions, answer.ref)
    await sessions.rewind(TENANT, SESSION, 29)
    assert (await sessions.commit_build(ticket, summary())).outcome == "standby"
    await sessions.rewind(TENANT, SESSION, ticket.covers_to - 1)
    assert (await sessions.view(TENANT, SESSION)).standby is None
    await holds(sessions)


async def swapped(sessions: Sessions, number: int) -> int:
    """Talks on until the next swap, with a builder at hand; the number of the turn that is next."""
    swaps = (await sessions.view(TENANT, SESSION)).swaps
    while True:
        answer = await append(sessions, said(number))
        number += 1
        if answer.swaps > swaps:
            return number
        ticket = await sessions.begin_build(TENANT, SESSION, answer.ref.incarnation, 20_000)
        if not isinstance(ticket, str):
            await sessions.commit_build(ticket, summary(f"SUMMARY {ticket.covers_to}"))


async def test_a_rewind_behind_a_summary_falls_back_to_the_one_before(sessions: Sessions) -> None:
    await talk(sessions, 1)
    covered, number = [], 2
    for _ in range(3):
        number = await swapped(sessions, number)
        covered.append((await sessions.view(TENANT, SESSION)).covers_to)
    await sessions.rewind(TENANT, SESSION, covered[2] - 1)
    view = await sessions.view(TENANT, SESSION)
    assert view.covers_to == covered[1]
    assert f"SUMMARY {covered[1]}" in await texts_of(sessions)
    assert f"SUMMARY {covered[2]}".encode() not in await everything_of(sessions)
    await holds(sessions)
    await sessions.rewind(TENANT, SESSION, 2)
    view = await sessions.view(TENANT, SESSION)
    assert (view.covers_to, view.degraded, len(await fragments(sessions))) == (0, False, 2)
    assert b"SUMMARY" not in await everything_of(sessions)


async def test_an_edit_of_the_first_turn_of_a_long_log_serves_what_fits_and_can_be_summarized_anew(
    sessions: Sessions,
) -> None:
    await talk(sessions, 1)
    number = 2
    for _ in range(3):
        number = await swapped(sessions, number)
    await sessions.edit_turn(TENANT, SESSION, "m1", turn("user", "the first words", id="m1"))
    view = await sessions.view(TENANT, SESSION)
    assert (view.covers_to, view.degraded, view.status) == (0, True, "degraded")
    assert "gap" in [line.part for line in await fragments(sessions)]
    assert "the first words" in await texts_of(sessions)
    await holds(sessions)
    ticket = await begin(sessions, view.ref)
    assert (await sessions.commit_build(ticket, summary())).outcome == "swapped"
    assert not (await sessions.view(TENANT, SESSION)).degraded
    await holds(sessions)


async def test_changes_leave_their_debts_to_the_embedders(sessions: Sessions) -> None:
    answer = await talk(sessions, 6)
    await sessions.mark_embedded(answer.ref, 6, "turns_x_3")
    await sessions.edit_turn(TENANT, SESSION, "m2", turn("assistant", "better", id="m2"))
    await sessions.edit_turn(TENANT, SESSION, "m5", turn("user", "better", id="m5"))
    await sessions.rewind(TENANT, SESSION, 4)
    debt = await sessions.embed_debt(answer.ref, "turns_x_3")
    assert debt is not None
    assert (debt.changes, debt.redo) == (3, (2,))
    assert [(one.first_seq, one.last_seq) for one in debt.purges] == [(2, 2), (5, 5), (5, 6)]
    due = await sessions.due(SessionKeys.of(TENANT, SESSION).partition, 2**53, 10)
    assert "embed" in {item.kind for item in due}


async def test_many_changes_leave_a_debt_of_bounded_size(sessions: Sessions) -> None:
    answer = await talk(sessions, 3, limit=100_000)
    await sessions.mark_embedded(answer.ref, 3, "turns_x_3")
    for number in range(limits.MOST_PURGES + 5):
        await sessions.edit_turn(TENANT, SESSION, "m2", turn("assistant", f"try {number}", id="m2"))
        await sessions.rewind(TENANT, SESSION, 2)
        await append(sessions, turn("user", "again"))
    debt = await sessions.embed_debt(answer.ref, "turns_x_3")
    assert debt is not None
    assert len(debt.purges) <= limits.MOST_PURGES
    assert min(one.first_seq for one in debt.purges) == 2
    rewound = await sessions.client.hget(SessionKeys.of(TENANT, SESSION).meta, "rewound")
    assert rewound == b"3-%d" % (limits.MOST_PURGES + 7), "neighbouring ranges are one"


async def test_a_long_log_is_changed_in_bounded_steps_and_loses_nothing_that_comes_meanwhile(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STAGE_ENTRIES", 20)
    await talk(sessions, 1, limit=100_000)
    await append(sessions, *[turn("user", f"line {number}", id=f"l{number}") for number in range(300)])

    async def speak() -> None:
        for number in range(30):
            await append(sessions, turn("assistant", f"meanwhile {number}"))

    changed, _ = await asyncio.gather(
        sessions.edit_turn(TENANT, SESSION, "l7", turn("user", "better", id="l7")), speak()
    )
    assert changed.changed
    turns = await sessions.read_turns(TENANT, SESSION, 0, 500)
    assert [one.seq for one in turns] == list(range(1, 332))
    assert [one.revision for one in turns if one.revision] == [1]
    await holds(sessions)


async def test_two_changes_at_once_both_happen(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STAGE_ENTRIES", 10)
    await append(sessions, *[turn("user", f"line {number}", id=f"l{number}") for number in range(100)])
    await asyncio.gather(
        *(sessions.edit_turn(TENANT, SESSION, f"l{n}", turn("user", f"better {n}", id=f"l{n}")) for n in range(4)),
        sessions.rewind(TENANT, SESSION, 50),
    )
    turns = await sessions.read_turns(TENANT, SESSION, 0, 500)
    assert [one.seq for one in turns] == list(range(1, 51))
    assert [one.revision for one in turns[:5]] == [1, 1, 1, 1, 0]
    assert (await sessions.view(TENANT, SESSION)).changes == 5


async def test_a_change_whose_maker_died_holds_up_the_next_one_for_seconds_only(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_PATIENCE_SECONDS", 0.1)
    await talk(sessions, 3)
    keys = SessionKeys.of(TENANT, SESSION)
    sessions.now_ms = 2_000_000_000_000
    stage = f"dead {sessions.now_ms + limits.milliseconds(limits.STAGE_HELD)} 0 1 9 0 0 0"
    await sessions.client.hset(keys.staged_ids, "stage", stage)
    await sessions.client.pexpire(keys.staged_ids, 60_000)
    with pytest.raises(OverloadedError) as refused:
        async with asyncio.timeout(20):
            await sessions.edit_turn(TENANT, SESSION, "m1", turn("user", "better"))
    assert refused.value.code == "changing"
    sessions.now_ms += limits.milliseconds(limits.STAGE_HELD)
    assert (await sessions.edit_turn(TENANT, SESSION, "m1", turn("user", "better"))).changed
    assert not await sessions.client.exists(keys.staged, keys.staged_ids)


async def test_changes_of_what_is_not_there_say_so(sessions: Sessions) -> None:
    with pytest.raises(NotFoundError) as missing:
        await sessions.rewind(TENANT, SESSION, 0)
    assert missing.value.code == "session_not_found"
    await talk(sessions, 1)
    for lost in (sessions.edit_turn(TENANT, SESSION, "x", said(1)), sessions.find_turn(TENANT, SESSION, "x")):
        with pytest.raises(NotFoundError) as missing:
            await lost
        assert missing.value.code == "turn_not_found"
    await sessions.erase(TENANT, SESSION)
    for gone in (sessions.rewind(TENANT, SESSION, 0), sessions.find_turn(TENANT, SESSION, "m1")):
        with pytest.raises(GoneError):
            await gone
