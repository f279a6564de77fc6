"""``DELETE /v1/sessions/{session}``: erasure, with a receipt."""

import time

import structlog
from starlette.responses import Response

from prefold.conversation.ids import check_name
from prefold.gateway.answers import ErasureAnswer, Remains
from prefold.gateway.bodies import json_response
from prefold.gateway.exchange import Exchange
from prefold.gateway.remains import remaining
from prefold.gateway.rewriting import LogRewrites
from prefold.gateway.summary_views import iso_time
from prefold.gateway.sweeping import Findings, Sweep
from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.limits import ERASE_GRACE, RETENTION, TOMBSTONE_EXTRA

log = structlog.get_logger(__name__)


class ErasureCalls:
    """Erases what was said. What is derived goes with it, and work under way is refused by the raised epoch."""

    def __init__(self, sessions: Sessions, sweep: Sweep, rewrites: LogRewrites) -> None:
        self._sessions = sessions
        self._sweep = sweep
        self._rewrites = rewrites

    async def session(self, exchange: Exchange) -> Response:
        """Erase a session. Safe to repeat: a repeat finishes what a failure had left."""
        tenant, session = exchange.tenant, check_name(exchange.path["session"], "session")
        exchange.query()
        erased = await self._sessions.erase(tenant, session)
        # The due entry stays: a job that embeds now may write once more, and the worker looks again after it.
        found = await self._sweep.run(tenant, erased)
        files = await remaining(
            self._rewrites, SessionKeys.of(tenant, session).meta, has_vectors=found.vectors is None, forks=erased.forks
        )
        log.info("session_erased", tenant=tenant, session=session, turns=erased.turns, not_checked=found.not_checked())
        receipt = ErasureAnswer(
            session=session,
            erased_at=iso_time(time.time_ns() // 1_000_000),
            turns=erased.turns,
            keys_left=found.keys,
            events_left=found.events,
            due_left=found.due,
            dead_letters_left=found.dead_letters,
            commands_left=found.logged_commands,
            jobs_left=found.jobs,
            vectors_left=found.vectors,
            not_checked=found.not_checked(),
            opened_anew=found.is_reopened,
            forks=list(erased.forks),
            remains=[*_in_memory(found), *files],
        )
        return json_response(receipt)


def _in_memory(found: Findings) -> list[Remains]:
    """What is not in a file."""
    look = f"a worker has looked again, {ERASE_GRACE.seconds} seconds from now or once it runs"
    days = (RETENTION + TOMBSTONE_EXTRA).days
    remains = [
        Remains(where="tombstone: the session's name, no word of it", until=f"{days} days have passed, or a PUT"),
        Remains(where="due entry: the session's name, no word of it", until=look),
        Remains(where="working memory of summary workers", until="newer turns displace it, or the worker is restarted"),
    ]
    if found.jobs is None:
        remains.append(Remains(where="job queue: the session's name, no word of it", until=look))
    if found.logged_commands is None:
        remains.append(
            Remains(where="log of slow commands", until="newer commands displace it, or the server restarts")
        )
    return remains
