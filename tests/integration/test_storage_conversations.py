"""Whole conversations through the scripts: valid and within the limit after each turn, whatever the limit."""

import math
from collections.abc import AsyncIterator

import pytest

from prefold.conversation.check import check_anthropic
from prefold.conversation.check_openai import check_openai
from prefold.conversation.openai_form import openai_messages
from prefold.conversation.project import anthropic_messages, parse_lines
from prefold.storage import Sessions, connect_sessions
from prefold.storage.types import BuildTicket, SessionOptions, SessionRef
from tests.support.storage import LEASE_MS, SESSION, TENANT, append, call, results, summary, turn


@pytest.fixture
async def sessions(redis_url: str) -> AsyncIterator[Sessions]:
    async with connect_sessions(redis_url) as opened:
        yield opened


def agent_run() -> list[object]:
    """A system prompt, a task, then rounds of all kinds, some never answered."""
    said: list[object] = [turn("system", "You fix builds. " * 30), turn("user", "The build of X-17 fails, fix it.")]
    for i in range(40):
        said += [call(f"c{i}", f"d{i}", q="path " * (i % 9 * 10)), results(f"d{i}", body="line " * (i * 13 % 300))]
        if i % 3:
            said.append(results(f"c{i}", body="ok"))
        if i % 4 == 0:
            said.append(turn("assistant", f"Step {i} is done. " * (i % 7 + 1)))
        if i % 5 == 0:
            said.append(turn("user", f"And {i}? " + "please " * (i * 7 % 90)))
        if i % 11 == 0:
            said.append(results(f"c{i - 1}", body="late"))
    return said


async def check(sessions: Sessions, limit: int) -> None:
    read = await sessions.read_context(TENANT, SESSION)
    header, lines = parse_lines(read.body)
    assert check_anthropic(anthropic_messages(lines), read.system or None) == []
    assert check_openai(openai_messages(lines, read.system)) == []
    view = await sessions.view(TENANT, SESSION)
    raw = sum(line.tokens for line in lines) + read.system_tokens
    assert view.tokens == math.ceil(raw * read.calibration) <= limit
    assert header["version"] == read.version == view.version
    gap = next((line for line in lines if line.part == "gap"), None)
    seqs = [line.seq for line in lines if line.part in ("", "short")]
    start = gap.seq if gap else read.covers_to
    expected = set(range(start + 1, read.head_seq + 1))
    leading = 1 if read.system and start == 0 else 0
    assert seqs == sorted(seqs)
    assert set(seqs) == {seq for seq in expected if seq > leading}


async def build(sessions: Sessions, ref: SessionRef) -> None:
    ticket = await sessions.begin_build(ref.tenant, ref.session, ref.incarnation, LEASE_MS)
    if isinstance(ticket, BuildTicket):
        result = await sessions.commit_build(ticket, summary(task=ticket.carried_turn > 0))
        if result.outcome == "no_gain":
            await sessions.abandon_build(ticket, "no_gain", 0)


@pytest.mark.parametrize("limit", [1000, 1500, 2000, 4000, 8000])
@pytest.mark.parametrize("every", [0, 1, 7])
async def test_an_agent_run_stays_valid_and_within_its_limit(sessions: Sessions, limit: int, every: int) -> None:
    """``every``: a build is tried after so many turns, 0 never."""
    await sessions.open(TENANT, SESSION, SessionOptions(hard_limit_tokens=limit))
    for number, published in enumerate(agent_run(), 1):
        answer = await append(sessions, published)  # type: ignore[arg-type]
        assert answer.tokens <= limit
        await check(sessions, limit)
        if every and number % every == 0 and answer.status in ("soft", "degraded"):
            await build(sessions, answer.ref)
            await check(sessions, limit)
    view = await sessions.view(TENANT, SESSION)
    assert view.swaps > 0 if every else view.degraded
