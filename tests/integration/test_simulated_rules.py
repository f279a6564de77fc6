"""The simulation's session counts what the real scripts count, turn for turn."""

import random
from datetime import timedelta

from redis.asyncio import Redis

from bench.simulation.scenario import Scenario
from bench.simulation.sessions import Session
from prefold.conversation.turns import PreparedTurn, TurnKind
from prefold.storage import Defaults, Sessions
from prefold.storage.types import BuildTicket, BuiltSummary, HeadFragment
from tests.support.seeds import seed_of_run

LIMIT = 4_000
TURN_TOKENS = (60, 200)
LEAD_SECONDS = 30.0
START_MS = 1_800_000_000_000


def turn(number: int, tokens: int) -> PreparedTurn:
    name = f"t{number}"
    return PreparedTurn(
        id=name,
        digest=name,
        kind=TurnKind.PLAIN,
        role="assistant" if number % 2 else "user",
        envelope=b'{"id":"%s"}' % name.encode(),
        verbatim="text",
        content=b'{"type":"text","text":"x"}',
        short=None,
        tokens=tokens,
        short_tokens=tokens,
    )


async def test_a_simulated_session_goes_as_the_scripts_go(redis: Redis) -> None:
    seed = seed_of_run("the talk")
    for soft in (0.6, 0.85, None):
        await follow(redis, f"s{soft}", soft, random.Random(f"{seed} {soft}"))


async def follow(redis: Redis, name: str, soft: float | None, source: random.Random) -> None:
    """Plays one conversation on both, with builds that take some turns, and compares after each turn."""
    scenario = Scenario(limit_tokens=LIMIT, soft_ratio=soft)
    simulated = Session(scenario, random.Random(1), 0.0, 1.0)
    defaults = Defaults(hard_limit_tokens=LIMIT, soft_ratio=soft, lead=timedelta(seconds=LEAD_SECONDS))
    real = Sessions(redis, now_ms=START_MS, defaults=defaults)
    build: tuple[BuildTicket, int, int, int] | None = None
    now = 0.0
    for number in range(150):
        tokens = source.randint(*TURN_TOKENS)
        now += tokens * 0.18
        real.now_ms = START_MS + round(now * 1000)
        if number == 0:
            simulated.born = simulated.updated = now
        answer = await real.append("acme", name, [turn(number, tokens)])
        simulated.append(tokens, now, LEAD_SECONDS)
        view = await real.view("acme", name)
        assert (view.limit_crossings, view.swaps) == (simulated.crossings, simulated.swaps), (soft, number)
        # The ladder leaves out whole turns, so a degraded context may be smaller by one.
        apart = TURN_TOKENS[1] if simulated.is_degraded else 0
        assert 0 <= simulated.tokens - answer.tokens <= apart, (soft, number)
        simulated.tokens = answer.tokens
        if build is not None and number >= build[3]:
            ticket, kept, begun, _ = build
            head = (HeadFragment("summary", b'{"type":"text","text":"y"}', round(scenario.head_share * LIMIT)),)
            await real.commit_build(ticket, BuiltSummary(head, "{}", 1.0))
            simulated.commit(kept, number - begun)
            build = None
        if build is None:
            ref = view.ref
            given = await real.begin_build(ref.tenant, ref.session, ref.incarnation, 600_000)
            assert isinstance(given, BuildTicket) == simulated.wants_build(), (soft, number, given)
            if isinstance(given, BuildTicket):
                kept_turns = simulated.begin_build()
                assert kept_turns is not None
                assert given.covers_to == number + 1 - kept_turns, (soft, number)
                build = (given, kept_turns, number, number + source.randint(1, 6))
    assert simulated.ready >= 1
