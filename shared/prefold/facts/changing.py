"""What statements, corrections, deletions and withdrawals do to a user's rows. Pure: a book in, a book out."""

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson

from prefold.facts.evidence import MOST_SAID_CHARACTERS, Evidence, Key, Row, decode_row, merged
from prefold.facts.names import normal_name, normal_text
from prefold.facts.rows import Fact, Source
from prefold.facts.settling import is_live, now_confidence, settled
from prefold.storage.memory_types import TurnSpan
from prefold.storage.users import StoredUser

__all__ = [
    "MOST_LIVE",
    "MOST_ROWS",
    "Book",
    "Turns",
    "Untold",
    "bounded",
    "digest_of",
    "opened",
    "with_evidence",
    "without_turns",
    "without_words",
]

MOST_LIVE: Final = 500
MOST_ROWS: Final = 2_000
"""With history."""


_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Book:
    """A user's rows at one moment."""

    rows: Mapping[str, Row]
    facts: Mapping[str, Fact]
    """What the rows come to, history included."""
    unreadable: Mapping[str, bytes]
    """Stored rows that are none."""

    def changed_to(self, rows: Mapping[str, Row]) -> "Book":
        """The book with these rows."""
        return replace(self, rows=rows, facts=settled(rows.values()))


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns whose word does not count any more."""

    session: str
    incarnation: str | None
    """None: of every life of the session."""
    spans: Sequence[TurnSpan] | None
    """None: all of them."""
    below_revision: int | None
    """Only what was learnt from an earlier revision; None: from any."""

    def have(self, source: Source | None) -> bool:
        """Whether the source is one of them."""
        if source is None or source.session != self.session:
            return False
        if self.incarnation is not None and source.incarnation != self.incarnation:
            return False
        if self.below_revision is not None and source.revision >= self.below_revision:
            return False
        return self.spans is None or any(span.first_seq <= source.seq <= span.last_seq for span in self.spans)

    def may_be_in(self, stored: bytes) -> bool:
        """Whether a row that cannot be read has to go because it may hold something of them."""
        return self.spans is None and orjson.dumps(self.session)[1:-1] in stored


@dataclass(frozen=True, slots=True)
class Untold:
    """What was deleted, as it may still stand in the sentences of other rows."""

    names: frozenset[str]
    turns: frozenset[tuple[str, str, str]]
    sentences: frozenset[str]

    @classmethod
    def of(cls, evidence: Iterable[Evidence]) -> "Untold":
        """What this evidence says."""
        told = list(evidence)
        return cls(
            frozenset(filter(None, (normal_name(one.object) for one in told))),
            frozenset(_turn(one.source) for one in told if one.source is not None),
            frozenset(one.said for one in told if one.said),
        )

    def is_in(self, one: Evidence) -> bool:
        """Whether its sentence tells it: the same one, or another that names it while its own object does not.

        Of the turns that it was said in, any sentence that names it, or that is cut off.
        """
        if not one.said or one.said in self.sentences:
            return bool(one.said)
        is_same_turn = one.source is not None and _turn(one.source) in self.turns
        if is_same_turn and len(one.said) >= MOST_SAID_CHARACTERS:
            return True
        names = [name for name in self.names if _may_hold(one.said, name)]
        said, own = (normal_text(one.said), "" if is_same_turn else normal_name(one.object)) if names else ("", "")
        return any(name in said and name not in own for name in names)


def _may_hold(said: str, name: str) -> bool:
    """False at a glance for most sentences."""
    lower = said.lower()
    return not said.isascii() or (name.isascii() and all(word in lower for word in _WORD.findall(name)))


def _turn(source: Source) -> tuple[str, str, str]:
    return (source.session, source.incarnation, source.turn_id)


def opened(stored: StoredUser) -> Book:
    """The book as it is stored. What is no row is passed over."""
    rows: dict[str, Row] = {}
    unreadable: dict[str, bytes] = {}
    for name, body in stored.rows.items():
        row = decode_row(name, body)
        if row is None:
            unreadable[name] = body
        else:
            rows[name] = row
    return Book(rows, settled(rows.values()), unreadable)


def digest_of(tenant: str, user: str, key: Key) -> str:
    """Under which a deleted statement is remembered without its words."""
    whole = orjson.dumps([tenant, user, key.subject, key.relation, key.object])
    return hashlib.sha256(whole).hexdigest()[:32]


def with_evidence(rows: Mapping[str, Row], told: Iterable[tuple[Key, Evidence]]) -> dict[str, Row]:
    """The rows with more evidence; rows that nothing new was said about are the same objects."""
    changed = dict(rows)
    by_key = {row.key: row.id for row in rows.values()}
    more: dict[Key, list[Evidence]] = {}
    for key, one in told:
        more.setdefault(key, []).append(one)
    for key, evidence in more.items():
        name = by_key.get(key)
        before = changed[name].evidence if name is not None else ()
        after = merged((*before, *evidence))
        if after != before:
            name = name or secrets.token_hex(10)
            changed[name] = Row(name, key, after)
    return changed


def without_turns(rows: Mapping[str, Row], turns: Turns) -> dict[str, Row]:
    """The rows without what the turns said; a row that nobody speaks for or against any more goes."""
    left: dict[str, Row] = {}
    for name, row in rows.items():
        evidence = tuple(one for one in row.evidence if not turns.have(one.source))
        if len(evidence) == len(row.evidence):
            left[name] = row
        elif any(not one.retracts or one.source is not None for one in evidence):
            left[name] = replace(row, evidence=evidence)
    return left


def without_words(rows: Mapping[str, Row], untold: Untold) -> dict[str, Row]:
    """The rows without the sentences that still tell it; rows that tell nothing of it are the same objects."""
    left: dict[str, Row] = {}
    for name, row in rows.items():
        evidence = tuple(replace(one, said="") if untold.is_in(one) else one for one in row.evidence)
        left[name] = row if evidence == row.evidence else replace(row, evidence=evidence)
    return left


def bounded(book: Book, now_ms: int) -> tuple[Book, list[str]]:
    """The book with no more rows than a user may have, and the ids of those that went.

    First the oldest history. Then what is least sure and was longest not said, with the history that it replaced, so
    that nothing outdated comes back in its place.
    """
    live = [fact for fact in book.facts.values() if is_live(fact, now_ms)]
    if len(live) <= MOST_LIVE and len(book.rows) <= MOST_ROWS:
        return book, []
    gone = _least_sure(live, book.facts, now_ms)
    old = sorted(
        (_ended_ms(row, book.facts.get(name)), name)
        for name, row in book.rows.items()
        if name not in gone and not _serves(name, book, now_ms)
    )
    gone.update(name for _, name in old[: max(0, len(book.rows) - len(gone) - MOST_ROWS)])
    return book.changed_to({name: row for name, row in book.rows.items() if name not in gone}), sorted(gone)


def _least_sure(live: Sequence[Fact], facts: Mapping[str, Fact], now_ms: int) -> set[str]:
    """Those of the live rows that are too many, the backend's last of all, with the history that leads to them."""
    ranked = sorted(
        live, key=lambda one: (one.origin == "backend", now_confidence(one, now_ms), one.last_confirmed_ms, one.id)
    )
    replaced: dict[str, list[str]] = {}
    for one in facts.values():
        if one.superseded_by is not None:
            replaced.setdefault(one.superseded_by, []).append(one.id)
    gone: set[str] = set()
    front = [one.id for one in ranked[: max(0, len(live) - MOST_LIVE)]]
    while front:
        name = front.pop()
        gone.add(name)
        front += [other for other in replaced.get(name, ()) if other not in gone]
    return gone


def _serves(name: str, book: Book, now_ms: int) -> bool:
    fact = book.facts.get(name)
    return fact is not None and is_live(fact, now_ms)


def _ended_ms(row: Row, fact: Fact | None) -> int:
    return row.evidence[-1].said_at_ms if fact is None else fact.superseded_at_ms or fact.expires_at_ms or 0
