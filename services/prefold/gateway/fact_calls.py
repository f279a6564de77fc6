"""``GET`` and ``POST /v1/users/{user}/facts``, ``PUT`` and ``DELETE …/facts/{fact}``: see, add, correct, delete."""

import re
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import UNSET
from starlette.responses import Response

from prefold.audit import AuditLog
from prefold.conversation.accepting import read_object
from prefold.conversation.ids import check_name, check_turn_id
from prefold.errors import GoneError, InvalidInputError, NotFoundError
from prefold.facts import CATEGORIES, Category, Fact, FactBook, NewFact, Source
from prefold.facts.evidence import MOST_MS
from prefold.gateway.auditing import note_removal
from prefold.gateway.bodies import convert, json_response
from prefold.gateway.exchange import Exchange, whole_number
from prefold.gateway.fact_answers import (
    AFTER_PATTERN,
    FactBody,
    FactChange,
    FactDeletedAnswer,
    FactsAnswer,
    FactWritten,
    SourceBody,
)
from prefold.gateway.fact_vectors import FactVectors
from prefold.gateway.fact_views import fact_answer
from prefold.gateway.remains import remaining
from prefold.gateway.rewriting import LogRewrites
from prefold.gateway.settings import GatewaySettings
from prefold.storage import Sessions
from prefold.storage.keys import UserKeys
from prefold.storage.memory_types import TurnSpan

DEFAULT_PAGE: Final = 100
MOST_PAGE: Final = 500
_MOST_BYTES: Final = 65_536
_FACT_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_AFTER: Final = re.compile(AFTER_PATTERN)


class FactCalls:
    """What is known of users, for whoever asks why, and for whoever knows better."""

    def __init__(
        self,
        sessions: Sessions,
        book: FactBook,
        vectors: FactVectors,
        rewrites: LogRewrites,
        settings: GatewaySettings,
        audit: AuditLog,
    ) -> None:
        self._sessions = sessions
        self._audit = audit
        self._book = book
        self._vectors = vectors
        self._rewrites = rewrites
        self._body_seconds = settings.body_timeout_ms / 1000

    async def read(self, exchange: Exchange) -> Response:
        """A page of facts; empty for a user of whom nothing is known."""
        user = check_name(exchange.path["user"], "user")
        query = exchange.query("history", "category", "limit", "after")
        limit = whole_number(query.get("limit", str(DEFAULT_PAGE)), "limit", least=1, most=MOST_PAGE)
        history, category = _flag(query.get("history", "false")), _category(query.get("category"))
        after = _after(query.get("after"))
        now_ms = _now_ms()
        facts = await self._book.list(exchange.tenant, user, history=history, category=category, now_ms=now_ms)
        rest = sorted((one for one in facts if after is None or _place(one) > after), key=_place)
        page = rest[:limit]
        more = f"{page[-1].first_seen_ms}_{page[-1].id}" if len(rest) > limit else None
        return json_response(FactsAnswer(facts=[fact_answer(one, now_ms) for one in page], next_after=more))

    async def add(self, exchange: Exchange) -> Response:
        """A fact in the backend's own words. The same again confirms it."""
        user = check_name(exchange.path["user"], "user")
        body = convert(await self._document(exchange), FactBody)
        now_ms = _now_ms()
        new = NewFact(
            subject=body.subject,
            relation=body.relation,
            object=body.object,
            category=body.category,
            confidence=body.confidence,
            expires_at_ms=_moment(body.expires_at, now_ms),
            sources=await self._sources(exchange.tenant, user, body.sources),
            is_entity=body.is_entity,
        )
        fact = await self._book.add(exchange.tenant, user, new, now_ms=now_ms)
        await self._check_again(exchange.tenant, user, body.sources, new.sources)
        await self._vectors.follow(exchange.tenant, user)
        return json_response(_written(exchange, fact, now_ms), 201)

    async def correct(self, exchange: Exchange) -> Response:
        """What the body names becomes so; the rest stays."""
        user, name = check_name(exchange.path["user"], "user"), _fact_id(exchange)
        body = convert(await self._document(exchange), FactChange)
        now_ms = _now_ms()
        before = await self._found(exchange.tenant, user, name, now_ms)
        fact = await self._book.correct(exchange.tenant, user, name, _changed(before, body, now_ms), now_ms=now_ms)
        await self._vectors.follow(exchange.tenant, user)
        return json_response(_written(exchange, fact, now_ms))

    async def delete(self, exchange: Exchange) -> Response:
        """The fact goes, with its vector, and is not learnt again."""
        tenant, user, name = exchange.tenant, check_name(exchange.path["user"], "user"), _fact_id(exchange)
        exchange.query()
        now_ms = _now_ms()
        deleted = await self._book.delete(tenant, user, name, now_ms=now_ms)
        await note_removal(self._audit, "fact_deleted", exchange.caller, {"user": user, "fact": deleted.id})
        vectors_left = await self._vectors.follow(tenant, user, [deleted.id])
        rows = await self._book.list(tenant, user, history=True, now_ms=now_ms)
        key = UserKeys.of(tenant, user).meta
        answer = FactDeletedAnswer(
            id=deleted.id,
            facts_left=sum(one.id == deleted.id for one in rows),
            vectors_left=vectors_left,
            remains=await remaining(self._rewrites, key, has_vectors=vectors_left is None),
        )
        return json_response(answer)

    async def _found(self, tenant: str, user: str, name: str, now_ms: int) -> Fact:
        facts = await self._book.list(tenant, user, history=True, now_ms=now_ms)
        for fact in facts:
            if fact.id == name:
                return fact
        raise NotFoundError("there is no such fact", code="fact_not_found", field="fact")

    async def _sources(self, tenant: str, user: str, named: Sequence[SourceBody]) -> list[Source]:
        """The turns that a body names, in the user's own sessions; another user's turn is as none."""
        found = []
        for number, one in enumerate(named):
            field = f"sources[{number}]"
            session = check_name(one.session, f"{field}.session")
            turn_id = check_turn_id(one.turn_id, f"{field}.turn_id")
            try:
                view = await self._sessions.view(tenant, session)
                turn = await self._sessions.find_turn(tenant, session, turn_id)
            except (NotFoundError, GoneError) as error:
                raise _no_such_turn(field) from error
            if view.user != user or turn.removed:
                raise _no_such_turn(field)
            found.append(Source(session, view.ref.incarnation, turn.id, turn.seq, turn.revision))
        return found

    async def _check_again(self, tenant: str, user: str, named: Sequence[SourceBody], found: Sequence[Source]) -> None:
        """A turn that changed while the fact was written had its facts withdrawn before this one was there."""
        try:
            now = await self._sources(tenant, user, named)
        except InvalidInputError:
            now = []
        gone = [source for source in found if source not in now]
        for one in gone:
            span = TurnSpan(one.seq, one.seq)
            await self._book.withdraw(
                tenant,
                user,
                session=one.session,
                incarnation=one.incarnation,
                spans=[span],
                below_revision=one.revision + 1,
            )
        if gone:
            raise _no_such_turn("sources")

    async def _document(self, exchange: Exchange) -> dict[str, object]:
        exchange.query()
        raw = await exchange.body(most_bytes=_MOST_BYTES, within_seconds=self._body_seconds)
        return read_object(raw, _MOST_BYTES)


def _written(exchange: Exchange, fact: Fact, now_ms: int) -> FactWritten:
    """What a write tells of a fact: all of it, or which it is."""
    return fact_answer(fact, now_ms) if exchange.may_read else FactWritten(id=fact.id)


def _changed(before: Fact, body: FactChange, now_ms: int) -> NewFact:
    expires_at_ms = before.expires_at_ms
    if body.expires_at is not UNSET:
        expires_at_ms = _moment(body.expires_at, now_ms)
    return NewFact(
        subject=before.subject if body.subject is UNSET else body.subject,
        relation=before.relation if body.relation is UNSET else body.relation,
        object=before.object if body.object is UNSET else body.object,
        category=before.category if body.category is UNSET else body.category,
        confidence=None if body.confidence is UNSET else body.confidence,
        expires_at_ms=expires_at_ms,
        is_entity=before.is_entity if body.is_entity is UNSET else body.is_entity,
    )


def _place(fact: Fact) -> tuple[int, str]:
    """The newest first; a fact keeps its place for good, so that pages follow each other."""
    return -fact.first_seen_ms, fact.id


def _after(value: str | None) -> tuple[int, str] | None:
    if value is None:
        return None
    if not _AFTER.fullmatch(value):
        raise InvalidInputError("must be `next_after` of another page", field="after")
    first_seen, _, name = value.partition("_")
    return -int(first_seen), name


def _flag(value: str) -> bool:
    if value not in ("true", "false"):
        raise InvalidInputError("must be true or false", field="history")
    return value == "true"


def _category(value: str | None) -> Category | None:
    if value is None or value in CATEGORIES:
        return value
    raise InvalidInputError(f"must be one of {', '.join(CATEGORIES)}", field="category")


def _fact_id(exchange: Exchange) -> str:
    name = exchange.path["fact"]
    if not _FACT_ID.fullmatch(name):
        raise InvalidInputError("is no id of a fact", code="invalid_id", field="fact")
    return name


def _moment(moment: datetime | None, now_ms: int) -> int | None:
    if moment is None:
        return None
    at_ms = int(moment.timestamp() * 1000)
    if not now_ms < at_ms <= MOST_MS:
        raise InvalidInputError("must lie in the future, up to the year 9999 in UTC", field="expires_at")
    return at_ms


def _no_such_turn(field: str) -> InvalidInputError:
    return InvalidInputError("the user has no such turn", code="source_not_found", field=field)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
