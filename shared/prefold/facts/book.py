"""What is known of each user: learnt, said by a backend, corrected, deleted, withdrawn with its turns, listed, shown."""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from prefold.errors import ConflictError, GoneError, InvalidInputError, NotFoundError, OverloadedError, TransientError
from prefold.facts.changing import (
    Book,
    Turns,
    Untold,
    bounded,
    digest_of,
    opened,
    with_evidence,
    without_turns,
    without_words,
)
from prefold.facts.evidence import Evidence, Key, encode_row, evidence_of
from prefold.facts.given import given_evidence
from prefold.facts.outcomes import Learnt, NewFact, Withdrawn
from prefold.facts.rendering import profile_of, text_of
from prefold.facts.rows import Category, Fact, Stated
from prefold.facts.settling import is_live
from prefold.storage.memory_types import TurnSpan
from prefold.storage.users import Profile, StoredUser, Users, user_erased
from prefold.tokens import TokenCounter, load_counter

__all__ = ["FactBook"]

_MOST_TRIES: Final = 60
_RETRY_AFTER: Final = timedelta(seconds=1)
_THREAD_FROM_ROWS: Final = 50
"""More are read and settled in a thread: 2,000 take some 60 ms, and others want the loop meanwhile."""

T = TypeVar("T")
Writing = Callable[[], Awaitable[bool]]


@dataclass(slots=True)
class _Change:
    """What one look at the book came to."""

    book: Book
    drop: list[str] = field(default_factory=list)
    """Stored rows that go though they cannot be read."""
    suppress: list[str] = field(default_factory=list)
    lift: list[str] = field(default_factory=list)
    forgets: bool = False


class FactBook:
    """The facts of all users of all tenants. Every call raises ``UnavailableError`` or ``OverloadedError``.

    Writers meet by compare and set, so they lose nothing of each other. ``GoneError`` (user_erased): the user was
    erased while the call was under way. Newest wins by key, also over the backend's word: what the user says after it
    is news. At one and the same moment the backend's word counts more.
    """

    def __init__(self, users: Users, counter: TokenCounter | None = None) -> None:
        """``counter`` None: the process's own, when the first profile is rendered."""
        self._users = users
        self._counter = counter

    async def learn(
        self, tenant: str, user: str, stated: Sequence[Stated], *, now_ms: int, epoch: int | None = None
    ) -> Learnt:
        """Takes in what a user said. Idempotent, and in whatever order it is told: what was said last holds.

        ``epoch``: the user's when the turns were read (``Users.epoch``), so that an erasure since then refuses them;
        None: it is not known, and only one during this call does.
        """
        before_after: list[tuple[Book, Book]] = []
        refused: Counter[str] = Counter()
        gone: list[str] = []

        def change(book: Book, stored: StoredUser) -> _Change | None:
            refused.clear()
            told = _accepted(tenant, user, stated, stored.suppressed, refused, now_ms)
            after, dropped = bounded(book.changed_to(with_evidence(book.rows, told)), now_ms)
            gone[:] = dropped
            before_after[:] = [(book, after)]
            return _Change(after)

        await self._change(tenant, user, change, now_ms, epoch)
        before, after = before_after[-1]
        refused["too_many"] = sum(name not in before.rows for name in gone)
        return _learnt(before, after, {code: times for code, times in refused.items() if times}, gone)

    async def add(self, tenant: str, user: str, new: NewFact, *, now_ms: int) -> Fact:
        """What a backend says: it holds from now on, until something newer is said. Twice confirms it.

        ``InvalidInputError`` names the field. A fact that was deleted may be added again, and is learnt again then.
        """
        key, told = given_evidence(new, now_ms)

        def change(book: Book, _: StoredUser) -> _Change:
            after, _dropped = bounded(book.changed_to(with_evidence(book.rows, told)), now_ms)
            return _Change(after, lift=[digest_of(tenant, user, key)])

        book = await self._change(tenant, user, change, now_ms, None)
        return _fact_at(book, key)

    async def correct(self, tenant: str, user: str, fact_id: str, new: NewFact, *, now_ms: int) -> Fact:
        """Puts what the backend says in the place of a fact, which becomes history and is not served again for it.

        The same statement with another category, confidence or end keeps its id. ``NotFoundError`` (fact_not_found);
        ``ConflictError`` (fact_superseded): it is history already.
        """
        key, told = given_evidence(new, now_ms)

        def change(book: Book, _: StoredUser) -> _Change:
            old = _known(book, fact_id)
            rows = with_evidence(book.rows, told)
            name = next(row.id for row in rows.values() if row.key == key)
            if old.superseded_by not in (None, name):  # told again after a lost reply, it has been done
                raise ConflictError("the fact is history", code="fact_superseded")
            if name != fact_id:
                rows = with_evidence(rows, [(rows[fact_id].key, _against(rows[fact_id].evidence[-1], now_ms, name))])
            after, _dropped = bounded(book.changed_to(rows), now_ms)
            return _Change(after, lift=[digest_of(tenant, user, key)])

        book = await self._change(tenant, user, change, now_ms, None)
        return _fact_at(book, key)

    async def delete(self, tenant: str, user: str, fact_id: str, *, now_ms: int | None = None) -> Fact:
        """Takes a fact out, history included, and keeps it from being learnt again. What it had replaced stays history.

        Sentences of other rows that tell it too go with it.

        The fact as it was. ``NotFoundError`` (fact_not_found).
        """
        seen: list[Fact] = []

        def change(book: Book, _: StoredUser) -> _Change | None:
            if seen and fact_id not in book.facts:
                return None  # the reply to the first try was lost
            seen[:] = [_known(book, fact_id)]
            after = book.changed_to({name: row for name, row in book.rows.items() if name != fact_id})
            closing = [
                (after.rows[name].key, _closed(after.rows[name].evidence[-1], fact.superseded_at_ms or 0))
                for name, fact in book.facts.items()
                if fact.superseded_by == fact_id and name != fact_id
            ]
            digest = digest_of(tenant, user, book.rows[fact_id].key)
            rows = without_words(with_evidence(after.rows, closing), Untold.of(book.rows[fact_id].evidence))
            return _Change(after.changed_to(rows), suppress=[digest], forgets=True)

        await self._change(tenant, user, change, _now(now_ms), None)
        return seen[0]

    async def withdraw(
        self,
        tenant: str,
        user: str,
        *,
        session: str,
        incarnation: str | None = None,
        spans: Sequence[TurnSpan] | None = None,
        below_revision: int | None = None,
        now_ms: int | None = None,
    ) -> Withdrawn:
        """Takes back what turns said, from history too; what they had replaced holds again. Idempotent.

        ``spans`` None: all of the session; ``below_revision``: only what was learnt from earlier revisions.
        """
        turns = Turns(session, incarnation, spans, below_revision)
        before_after: list[tuple[Book, Book]] = []

        def change(book: Book, _: StoredUser) -> _Change:
            after = book.changed_to(without_turns(book.rows, turns))
            before_after[:] = [(book, after)]
            lost = [name for name, body in book.unreadable.items() if turns.may_be_in(body)]
            return _Change(after, drop=lost, forgets=True)

        await self._change(tenant, user, change, _now(now_ms), None)
        before, after = before_after[-1]
        return _withdrawn(before, after)

    async def list(
        self, tenant: str, user: str, *, history: bool = False, category: Category | None = None, now_ms: int
    ) -> list[Fact]:
        """Facts that hold, or all with ``history``; what was said last comes first."""
        book = await self._opened(await self._users.snapshot(tenant, user))
        found = [
            fact
            for fact in book.facts.values()
            if (history or is_live(fact, now_ms)) and (category is None or fact.category == category)
        ]
        return sorted(found, key=lambda fact: (-fact.last_confirmed_ms, fact.id))

    async def unreadable(self, tenant: str, user: str) -> int:
        """Stored rows that cannot be read. They are passed over and left alone."""
        return len((await self._opened(await self._users.snapshot(tenant, user))).unreadable)

    async def profile(self, tenant: str, user: str, *, now_ms: int | None = None) -> Profile:
        """The profile as it is now: one GET. Only the first reading after a line's time has passed renders it anew."""
        now = _now(now_ms)
        profile = await self._users.read_profile(tenant, user)
        if profile.holds_until_ms is None or profile.holds_until_ms > now:
            return profile
        stored = await self._users.snapshot(tenant, user)
        profile = await self._apart(stored, lambda: self._rendered(opened(stored), now))
        await self._keep(tenant, user, stored, profile)
        return profile

    async def _keep(self, tenant: str, user: str, stored: StoredUser, profile: Profile) -> None:
        """Writes a profile that was rendered anew, unless somebody wrote another. That it fails harms nobody."""
        with contextlib.suppress(TransientError, GoneError):
            await self._users.write(
                tenant,
                user,
                expected_version=stored.version,
                epoch=stored.epoch,
                put={},
                drop=(),
                profile=profile.encode(),
            )

    async def _change(
        self,
        tenant: str,
        user: str,
        change: Callable[[Book, StoredUser], _Change | None],
        now_ms: int,
        epoch: int | None,
    ) -> Book:
        """Reads, changes and writes until nobody wrote in between; the book as it is then."""
        for tries in range(_MOST_TRIES):
            stored = await self._users.snapshot(tenant, user)
            epoch = stored.epoch if epoch is None else epoch
            if stored.epoch != epoch:
                raise user_erased()
            book, write = await self._apart(stored, partial(self._prepared, tenant, user, stored, change, now_ms))
            if write is None or await write():
                return book
            await asyncio.sleep(random.random() * min(0.1, 0.004 * 2**tries))  # noqa: S311 (spreads writers, no secret)
        raise OverloadedError("too many write of this user at once", code="user_busy", retry_after=_RETRY_AFTER)

    def _prepared(
        self,
        tenant: str,
        user: str,
        stored: StoredUser,
        change: Callable[[Book, StoredUser], _Change | None],
        now_ms: int,
    ) -> tuple[Book, Writing | None]:
        """The book after the change, and the write that makes it so; None: nothing has to be written."""
        book = opened(stored)
        made = change(book, stored)
        return (book, None) if made is None else (made.book, self._writing(tenant, user, stored, book, made, now_ms))

    def _writing(
        self, tenant: str, user: str, stored: StoredUser, before: Book, made: _Change, now_ms: int
    ) -> Writing | None:
        after = made.book
        put = {name: encode_row(row) for name, row in after.rows.items() if before.rows.get(name) is not row}
        drop = [name for name in before.rows if name not in after.rows] + made.drop
        suppress = [digest for digest in made.suppress if digest not in stored.suppressed]
        lift = [digest for digest in made.lift if digest in stored.suppressed]
        if not (put or drop or suppress or lift):
            return None
        return partial(
            self._users.write,
            tenant,
            user,
            expected_version=stored.version,
            epoch=stored.epoch,
            put=put,
            drop=drop,
            profile=self._rendered(after, now_ms).encode(),
            suppress=suppress,
            lift=lift,
            unindexed=_unindexed(before.facts, after.facts) + made.drop,
            forgets=made.forgets,
        )

    async def _opened(self, stored: StoredUser) -> Book:
        return await self._apart(stored, lambda: opened(stored))

    async def _apart(self, stored: StoredUser, work: Callable[[], T]) -> T:
        """What the work comes to; a long one is done in a thread."""
        return await asyncio.to_thread(work) if len(stored.rows) > _THREAD_FROM_ROWS else work()

    def _rendered(self, book: Book, now_ms: int) -> Profile:
        if self._counter is None:
            self._counter = load_counter()
        return profile_of(book.facts.values(), self._counter, now_ms)


def _now(now_ms: int | None) -> int:
    return time.time_ns() // 1_000_000 if now_ms is None else now_ms


def _accepted(
    tenant: str,
    user: str,
    stated: Sequence[Stated],
    suppressed: frozenset[str],
    refused: Counter[str],
    now_ms: int,
) -> list[tuple[Key, Evidence]]:
    accepted: list[tuple[Key, Evidence]] = []
    deleted: list[Evidence] = []
    for one in stated:
        made = evidence_of(one, now_ms)
        if isinstance(made, str):
            refused[made] += 1
        elif suppressed and digest_of(tenant, user, made[0]) in suppressed:
            refused["suppressed"] += 1
            deleted.append(made[1])
        else:
            accepted.append(made)
    untold = Untold.of(deleted)
    return [(key, replace(one, said="") if untold.is_in(one) else one) for key, one in accepted]


def _known(book: Book, fact_id: str) -> Fact:
    fact = book.facts.get(fact_id)
    if fact is None:
        raise NotFoundError("the user has no such fact", code="fact_not_found")
    return fact


def _fact_at(book: Book, key: Key) -> Fact:
    for row in book.rows.values():
        if row.key == key:
            return book.facts[row.id]
    raise InvalidInputError("the user has too many facts, all of them surer", code="too_many_facts")


def _against(shown: Evidence, at_ms: int, by: str | None) -> Evidence:
    """The backend's word that a row is over."""
    return replace(
        shown, source=None, origin="backend", said_at_ms=at_ms, said="", retracts=True, by=by, expires_at_ms=None
    )


def _closed(newest: Evidence, at_ms: int) -> Evidence:
    """The same of what something newer had replaced: no earlier than the row's newest word, whatever its date says."""
    return _against(newest, max(at_ms, newest.said_at_ms), None)


def _served(fact: Fact | None) -> tuple[str, Category] | None:
    return (text_of(fact), fact.category) if fact is not None and fact.superseded_by is None else None


def _unindexed(before: Mapping[str, Fact], after: Mapping[str, Fact]) -> list[str]:
    """Rows whose vector is to be made, made anew or removed."""
    return [name for name in {**before, **after} if _served(before.get(name)) != _served(after.get(name))]


def _ended(before: Book, after: Book) -> list[str]:
    return [
        name
        for name, fact in after.facts.items()
        if fact.superseded_by is not None and name in before.facts and before.facts[name].superseded_by is None
    ]


def _learnt(before: Book, after: Book, refused: dict[str, int], dropped: list[str]) -> Learnt:
    return Learnt(
        added=[fact for name, fact in after.facts.items() if name not in before.facts],
        confirmed=[name for name in before.facts if name in after.rows and _has_more(before, after, name)],
        superseded=_ended(before, after),
        refused=refused,
        dropped=[name for name in dropped if name in before.rows],
        unreadable=len(before.unreadable),
    )


def _has_more(before: Book, after: Book, name: str) -> bool:
    return len(after.rows[name].asserted()) > len(before.rows[name].asserted()) or (
        after.facts[name].last_confirmed_ms > before.facts[name].last_confirmed_ms
    )


def _withdrawn(before: Book, after: Book) -> Withdrawn:
    return Withdrawn(
        dropped=[name for name in before.rows if name not in after.rows],
        weakened=[name for name, row in after.rows.items() if row is not before.rows[name]],
        restored=_ended(after, before),
        unreadable=len(before.unreadable),
    )
