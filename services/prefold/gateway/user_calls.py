"""``DELETE /v1/users/{user}``: erasure of everything of a user, with a receipt."""

import time
from collections.abc import Sequence
from typing import Final

import structlog
from starlette.responses import Response

from prefold.audit import AuditLog
from prefold.conversation.ids import check_name
from prefold.gateway.answers import Remains
from prefold.gateway.auditing import note_removal
from prefold.gateway.bodies import json_response
from prefold.gateway.erasure_calls import in_memory
from prefold.gateway.exchange import Exchange
from prefold.gateway.remains import remaining
from prefold.gateway.rewriting import LogRewrites
from prefold.gateway.since import before_of
from prefold.gateway.summary_views import iso_time
from prefold.gateway.sweeping import Findings
from prefold.gateway.user_answers import UserErasureAnswer
from prefold.gateway.user_erasing import UserErasing
from prefold.storage.keys import SessionKeys, TenantKeys, UserKeys
from prefold.storage.limits import MEMORY_RETENTION

log = structlog.get_logger(__name__)

_WITHIN_SECONDS: Final = 45.0
"""For the sessions of a user; what is left then, a repeat erases."""
_ANSWER_SECONDS: Final = 60.0
_MARK: Final = "mark of the erasure: the user's name and a number, no word of theirs"


class UserCalls:
    """Erases users. Whoever is set as a session's user again afterwards begins anew."""

    def __init__(self, erasing: UserErasing, rewrites: LogRewrites, audit: AuditLog) -> None:
        self._erasing = erasing
        self._audit = audit
        self._rewrites = rewrites

    async def erase(self, exchange: Exchange) -> Response:
        """Erase a user. Safe to repeat, also for one that nobody has heard of."""
        tenant, user = exchange.tenant, check_name(exchange.path["user"], "user")
        before_ms = before_of(exchange)
        exchange.take_time(_ANSWER_SECONDS)
        erased = await self._erasing.run(exchange.caller, user, within_seconds=_WITHIN_SECONDS, before_ms=before_ms)
        await note_removal(self._audit, "user_erased", exchange.caller, {"user": user})
        found = erased.findings()
        names = list(erased.sessions)
        log.info("user_erased", tenant=tenant, sessions=len(names), facts=erased.facts, not_checked=found.not_checked())
        receipt = UserErasureAnswer(
            user=user,
            erased_at=iso_time(time.time_ns() // 1_000_000),
            sessions=names,
            turns=erased.turns,
            facts=erased.facts,
            sessions_left=erased.sessions_left,
            facts_left=erased.facts_left,
            keys_left=found.keys,
            events_left=found.events,
            due_left=found.due,
            dead_letters_left=found.dead_letters,
            commands_left=found.logged_commands,
            jobs_left=found.jobs,
            vectors_left=found.vectors,
            not_checked=found.not_checked(),
            opened_anew=found.is_reopened,
            remains=[
                Remains(where=_MARK, until=f"{MEMORY_RETENTION.days} days have passed"),
                *(in_memory(found) if names else []),
                *await self._files(tenant, user, names, found),
            ],
        )
        return json_response(receipt)

    async def _files(self, tenant: str, user: str, sessions: Sequence[str], found: Findings) -> list[Remains]:
        keys = [UserKeys.of(tenant, user).meta, *(SessionKeys.of(tenant, one).meta for one in sessions)]
        if found.was_published:
            keys.append(TenantKeys.of(tenant).ingest)
        return await remaining(self._rewrites, *keys, has_vectors=found.vectors is None)
