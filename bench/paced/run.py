"""One run: starts everything, lets all sessions talk, and counts."""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta

from bench.paced.doors import DirectDoor, Door, HttpDoor
from bench.paced.figures import figures_of, stalls_of
from bench.paced.model import running_model
from bench.paced.plan import TENANT, Scale, SessionPlan, session_plans
from bench.paced.report import Outcome
from bench.paced.talk import Talk, TalkRecord
from bench.paced.town import build_events, cpu_seconds, paced_stack
from prefold.client import AsyncPrefold
from prefold.replay.recount import Recount
from prefold.stack.embedded import EmbeddedStack
from prefold.storage import connect_sessions
from prefold.tokens import load_counter

PRIOR_SECONDS = 180.0
"""What the product takes for a model's builds while it has measured none."""


async def run(scale: Scale, seed: int) -> Outcome:
    """Everything is gone afterwards."""
    load = os.getloadavg()[0]
    async with AsyncExitStack() as living:
        model = living.enter_context(running_model(scale, seed))
        stack = await asyncio.to_thread(living.enter_context, paced_stack(scale, model))
        began = time.monotonic()
        records = await _talk(stack, scale, session_plans(scale, seed))
        seconds = time.monotonic() - began
        cpu = {**stack.pids(), "driver": os.getpid(), "model": model.pid}
        used = cpu_seconds(list(cpu.values()))
        builds, calls = build_events(stack.folder.logs), await asyncio.to_thread(model.calls)
    return Outcome(
        scale,
        seed,
        figures_of(records, scale.time_factor),
        builds,
        calls,
        stalls_of(records, calls, scale.time_factor, seed),
        seconds,
        {name: used[pid] / seconds for name, pid in cpu.items() if pid in used},
        (load, os.getloadavg()[0]),
    )


async def _talk(stack: EmbeddedStack, scale: Scale, plans: Sequence[SessionPlan]) -> list[TalkRecord]:
    lead = timedelta(seconds=scale.scaled(PRIOR_SECONDS))
    recount = Recount(load_counter())
    async with (
        connect_sessions(stack.redis_url, max_connections=128, lead=lead) as sessions,
        AsyncPrefold(stack.gateway_url) as client,
    ):
        began = time.monotonic()

        def door(plan: SessionPlan) -> Door:
            if plan.over_http:
                return HttpDoor(client, plan.name, recount)
            return DirectDoor(sessions, TENANT, plan.name)

        talks = [Talk(sessions, door(plan), plan, scale, began) for plan in plans]
        return list(await asyncio.gather(*(talk.run() for talk in talks)))
