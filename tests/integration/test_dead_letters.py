"""The list of work that was set aside, and the command that looks after it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from prefold.config.addresses import Addresses
from prefold.deadletters.main import main
from prefold.jobs import DeadLetter, DeadLetters, queue_connection
from prefold.jobs.dead_letters import running_version, state_of
from prefold.jobs.names import WorkKind
from prefold.jobs.starts import Starts
from prefold.storage import Sessions, connect_sessions, limits
from prefold.storage.keys import PartitionKeys, partition_of
from prefold.storage.types import SessionOptions, SessionRef
from tests.support.storage import append, turn


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of this process are not the command's to set up."""
    monkeypatch.setattr("prefold.deadletters.main.configure_logging", lambda *_: None)


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


@pytest.fixture
def letters(redis: Redis) -> DeadLetters:
    return DeadLetters(redis)


def letter(ref: SessionRef, kind: WorkKind = "embed", *, at_ms: int = 1_700_000_000_000, **more: object) -> DeadLetter:
    base = DeadLetter(
        at_ms=at_ms,
        kind=kind,
        tenant=ref.tenant,
        session=ref.session,
        incarnation=ref.incarnation,
        reason="worker_died",
        starts=3,
        first_ms=at_ms - 60_000,
        from_seq=1,
        to_seq=1,
        version=running_version(),
        state="0 100000 6",
    )
    return replace(base, **more)  # type: ignore[arg-type]


async def set_aside(
    sessions: Sessions, letters: DeadLetters, session: str = "s", kind: WorkKind = "embed", **more: object
) -> DeadLetter:
    """A session whose work of that kind is set aside now."""
    ref = (await append(sessions, turn("user", "hello"), session=session)).ref
    seconds, _ = await sessions.client.time()
    made = letter(ref, kind, at_ms=int(seconds) * 1000, **more)
    assert await letters.set_aside(made)
    return made


async def due(sessions: Sessions, kind: str) -> list[str]:
    items = await sessions.due_sets.due(2**52, 1_000)
    return sorted(item.ref.session for item in items if item.kind == kind)


async def test_a_letter_is_found_listed_and_counted(sessions: Sessions, letters: DeadLetters) -> None:
    made = await set_aside(sessions, letters)
    other = SessionRef("acme", "other", "life")
    assert await letters.find("embed", [other, made.ref]) == [None, made]
    assert await letters.find("compact", [made.ref]) == [None]
    assert await letters.letters() == [made]
    assert (await letters.count("acme", "s"), await letters.count("acme", "other")) == (1, 0)


async def test_setting_aside_takes_that_work_out_of_due_and_no_other(sessions: Sessions, letters: DeadLetters) -> None:
    await set_aside(sessions, letters)
    assert (await due(sessions, "embed"), await due(sessions, "expire")) == ([], ["s"])


async def test_letters_are_chosen_by_tenant_session_and_kind(sessions: Sessions, letters: DeadLetters) -> None:
    first = await set_aside(sessions, letters, "a")
    second = await set_aside(sessions, letters, "a", "compact")
    third = await set_aside(sessions, letters, "b")
    assert await letters.letters(tenant="acme", session="a") == [second, first]
    assert await letters.letters(kind="embed") == [first, third]
    assert await letters.letters(tenant="acme", kind="compact") == [second]
    assert await letters.letters(tenant="globex") == []


async def test_erasing_a_session_finds_the_letters_of_all_its_lives_and_only_those(
    sessions: Sessions, letters: DeadLetters
) -> None:
    await set_aside(sessions, letters, "s")
    await sessions.erase("acme", "s")
    await sessions.open("acme", "s", SessionOptions())
    await set_aside(sessions, letters, "s")
    await set_aside(sessions, letters, "s2")
    assert await letters.count("acme", "s") == 2
    assert await letters.erase("acme", "s") == 2
    assert (await letters.count("acme", "s"), await letters.count("acme", "s2")) == (0, 1)
    assert await letters.erase("acme", "s") == 0


async def test_no_letter_comes_after_an_erasure(sessions: Sessions, letters: DeadLetters) -> None:
    ref = (await append(sessions, turn("user", "hello"), session="s")).ref
    await sessions.erase("acme", "s")
    assert not await letters.set_aside(letter(ref))
    await sessions.open("acme", "s", SessionOptions())
    assert not await letters.set_aside(letter(ref))
    assert await letters.letters() == []


async def test_work_that_is_asked_for_again_is_taken_out_of_due_unless_it_was_replayed(
    sessions: Sessions, letters: DeadLetters
) -> None:
    made = await set_aside(sessions, letters)
    await sessions.mark_embedded(made.ref, 0, "some")  # puts the entry back, as a job that was in hand would
    assert await due(sessions, "embed") == ["s"]
    await letters.take_out_again(made)
    assert await due(sessions, "embed") == []
    await letters.release(made)
    await letters.take_out_again(made)
    assert await due(sessions, "embed") == ["s"]


async def test_a_replay_makes_due_what_is_left_to_do_and_nothing_else(sessions: Sessions, letters: DeadLetters) -> None:
    made = await set_aside(sessions, letters)
    done = await set_aside(sessions, letters, "done")
    await sessions.mark_embedded(done.ref, 1, "some")
    for one in (made, done):
        await letters.release(one)
        await letters.release(one)
    assert await letters.letters() == []
    assert await due(sessions, "embed") == ["s"]


async def test_a_replayed_summary_does_not_wait_for_its_pause(sessions: Sessions, letters: DeadLetters) -> None:
    await sessions.open("acme", "s", SessionOptions(hard_limit_tokens=1_000))
    ref = None
    for number in range(9):
        ref = (await append(sessions, turn("user", f"{number} " + "word " * 80), session="s")).ref
    assert ref is not None
    ticket = await sessions.begin_build("acme", "s", ref.incarnation, 60_000)
    assert not isinstance(ticket, str)
    await sessions.abandon_build(ticket, "engine_fault", 900_000)
    made = letter(ref, "compact")
    assert await letters.set_aside(made)
    await letters.release(made)
    assert not isinstance(await sessions.begin_build("acme", "s", ref.incarnation, 60_000), str)


async def test_the_list_is_bounded_and_the_oldest_goes_first(
    sessions: Sessions, letters: DeadLetters, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_ASIDE", 2)
    home = partition_of("acme", "s")
    names = [name for name in (f"s{number}" for number in range(4_000)) if partition_of("acme", name) == home][:3]
    made = [await set_aside(sessions, letters, name) for name in names]
    for age, one in enumerate(made):
        await letters.set_aside(replace(one, at_ms=one.at_ms - 1_000 * (9 - age)))
    left = [one.session for one in await letters.letters()]
    assert left == names[1:]
    assert 0 < await redis.pttl(PartitionKeys.of(home).dead) <= limits.milliseconds(limits.ASIDE_KEPT)


async def test_a_letter_ends_by_its_age_even_where_others_keep_coming(sessions: Sessions, letters: DeadLetters) -> None:
    home = partition_of("acme", "s")
    old, new = [name for name in (f"s{n}" for n in range(4_000)) if partition_of("acme", name) == home][:2]
    made = await set_aside(sessions, letters, old)
    too_long_ms = limits.milliseconds(limits.ASIDE_KEPT + timedelta(hours=1))
    await letters.set_aside(replace(made, at_ms=made.at_ms - too_long_ms))
    await set_aside(sessions, letters, new)
    assert [one.session for one in await letters.letters()] == [new]


def test_a_letter_of_a_later_version_can_be_read() -> None:
    made = letter(SessionRef("acme", "s", "life"))
    later = json.loads(made.encode()) | {"more": 1}
    assert DeadLetter.decode(json.dumps(later).encode()) == made
    assert made.encode().startswith(b'{"at_ms":1700000000000,')


async def test_what_may_help_is_a_change_of_turns_of_limits_or_of_prefold(sessions: Sessions) -> None:
    await append(sessions, turn("user", "hello", id="t1"), session="s")
    view = await sessions.view("acme", "s")
    made = replace(letter(view.ref), state=state_of(view))
    assert not made.has_moved_on(view, running_version(), made.at_ms)
    assert made.has_moved_on(view, "9.9.9", made.at_ms)
    assert made.has_moved_on(replace(view, changes=view.changes + 1), running_version(), made.at_ms)
    assert made.has_moved_on(replace(view, hard_limit_tokens=5_000), running_version(), made.at_ms)
    assert not made.has_moved_on(None, running_version(), made.at_ms)


async def test_more_turns_help_a_refused_summary_and_nothing_else(sessions: Sessions) -> None:
    await append(sessions, turn("user", "hello"), session="s")
    view = await sessions.view("acme", "s")
    refused = replace(
        letter(view.ref, "compact"), reason="summary_language", to_seq=100, state=state_of(view), from_seq=1
    )

    def helps(one: DeadLetter, head_seq: int) -> bool:
        return one.has_moved_on(replace(view, head_seq=head_seq), running_version(), one.at_ms)

    assert [helps(refused, head) for head in (100, 124, 125)] == [False, False, True]
    assert not helps(replace(refused, reason="worker_died"), 10_000)
    assert not helps(replace(refused, kind="embed"), 10_000)


def arguments(redis_url: str, queue_url: str, *rest: str) -> list[str]:
    return [*rest, "--redis-url", redis_url, "--queue-url", queue_url, "--audit-file", os.devnull]


async def prepared(redis_url: str) -> DeadLetter:
    async with connect_sessions(redis_url) as sessions:
        letters = DeadLetters(sessions.client)
        await set_aside(sessions, letters, "a\x1b[2J")
        return await set_aside(sessions, letters, "b", reason="engine_fault")


async def run(command: list[str]) -> int:

    return await asyncio.to_thread(main, command)


async def test_the_command_lists_and_shows(redis_url: str, queue_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = await prepared(redis_url)
    assert await run(arguments(redis_url, queue_url, "list")) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert "acme/a\\x1b[2J" in first
    assert "acme/b" in second and "engine_fault" in second and "3 starts" in second
    assert last == "2 pieces of work set aside"
    await run(arguments(redis_url, queue_url, "show", "--tenant", "acme", "--session", "b"))
    assert f"incarnation  {made.incarnation}" in capsys.readouterr().out
    await run(arguments(redis_url, queue_url, "list", "--kind", "embed", "--json"))
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["session"] for row in rows] == ["a\x1b[2J", "b"]


async def test_the_command_finds_a_stack_that_runs_on_its_data_folder(
    redis_url: str, queue_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await prepared(redis_url)
    Addresses(redis_url, queue_url, "http://127.0.0.1:1").write(tmp_path)
    assert await run(["replay", "--all", "--data-dir", str(tmp_path), "--audit-file", os.devnull]) == 0
    assert capsys.readouterr().out.endswith("2 pieces of work given another try\n")


async def test_the_command_replays_with_nothing_behind_the_work(
    redis_url: str, queue_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = await prepared(redis_url)
    with queue_connection(queue_url) as queue:
        starts = Starts(queue, "embed", silent=timedelta(seconds=3), execution=timedelta(seconds=6))
        starts.begin([made.ref], "job:run")
        await run(arguments(redis_url, queue_url, "replay", "--tenant", "acme", "--session", "b"))
        assert starts.trails([made.ref], "other:run")[0].starts == 0
    assert capsys.readouterr().out.endswith("1 piece of work given another try\n")
    async with connect_sessions(redis_url) as sessions:
        assert await due(sessions, "embed") == ["b"]
        assert [one.session for one in await DeadLetters(sessions.client).letters()] == ["a\x1b[2J"]


async def test_the_command_erases(redis_url: str, queue_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    await prepared(redis_url)
    await run(arguments(redis_url, queue_url, "erase", "--all"))
    assert capsys.readouterr().out.endswith("2 pieces of work forgotten\n")
    async with connect_sessions(redis_url) as sessions:
        assert await DeadLetters(sessions.client).letters() == []
        assert await due(sessions, "embed") == []


@pytest.mark.parametrize(
    "wrong",
    [
        ["replay"],
        ["erase"],
        ["erase", "--all", "--kind", "embed"],
        ["list", "--session", "s"],
        ["list", "--kind", "soup"],
        ["bury"],
    ],
)
def test_the_command_wants_to_be_told_what(
    redis_url: str, queue_url: str, wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments(redis_url, queue_url, *wrong))
    assert left.value.code == 2
    assert "usage" in capsys.readouterr().err
