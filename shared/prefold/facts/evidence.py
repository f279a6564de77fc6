"""What is stored: a row is everything that was said for and against one statement. Which rows hold follows from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import msgspec
import orjson

from prefold.facts.names import USER, clean, normal_subject
from prefold.facts.relations import denied, group_of, known, normal_object, normal_relation
from prefold.facts.rows import Category, Origin, Source, Stated

__all__ = [
    "FADED_CONFIDENCE",
    "LEAST_CONFIDENCE",
    "MOST_EVIDENCE",
    "MOST_MS",
    "MOST_SAID_CHARACTERS",
    "MOST_TEXT_CHARACTERS",
    "Evidence",
    "Key",
    "Row",
    "decode_row",
    "encode_row",
    "evidence_of",
    "key_of",
    "merged",
    "rank_of",
]

MOST_TEXT_CHARACTERS: Final = 300
"""Of a subject or an object."""
MOST_SAID_CHARACTERS: Final = 300
MOST_EVIDENCE: Final = 16
"""A row keeps the oldest of it and the newest; what the backend said last it always keeps."""
MOST_MS: Final = 253_402_300_799_000
"""The last moment of the year 9999: later ones cannot be written as a date."""
LEAST_CONFIDENCE: Final = 0.5
"""What was said with less is not learnt."""
FADED_CONFIDENCE: Final = 0.25
"""What has decayed below it is not in the profile any more: so, after two half-lives, what was said with certainty."""
_RANK: Final[dict[Origin, int]] = {"extracted": 0, "model": 1, "backend": 2}

Moment = Annotated[int, msgspec.Meta(ge=0, le=MOST_MS)]


@dataclass(frozen=True, slots=True)
class Key:
    """Rows with the same key are one. Normalised: see ``names`` and ``relations``."""

    subject: str
    relation: str
    object: str
    """Empty: a retraction of whatever the object was."""

    def slot(self, is_single: bool) -> tuple[str, ...]:
        """Rows with the same slot exclude each other: the newest wins."""
        if is_single:
            return (self.subject, self.relation)
        return (self.subject, group_of(self.relation), self.object)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One turn, or one word of the backend, for or against a row."""

    source: Source | None
    """None: the backend named no turn."""
    origin: Origin
    said_at_ms: Moment
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]
    subject: str
    object: str
    category: Category
    said: str = ""
    is_entity: bool = False
    is_single: bool | None = None
    """None: it says nothing about that."""
    retracts: bool = False
    expires_at_ms: Moment | None = None
    by: str | None = None
    """Of a retraction: the row that the backend put in this one's place; with that one it goes."""

    def order(self) -> tuple[int, int, int, int, int, str, str]:
        """The newest is the greatest.

        At one moment the backend's word counts most, then the later turn, then the retraction, then the model's.
        """
        is_backend = int(self.origin == "backend")
        session, incarnation, seq = ("", "", 0)
        if self.source is not None and not is_backend:  # which it names to show that it is so, not since when
            session, incarnation, seq = self.source.session, self.source.incarnation, self.source.seq
        return (self.said_at_ms, is_backend, seq, int(self.retracts), _RANK[self.origin], session, incarnation)


@dataclass(frozen=True, slots=True)
class Row:
    """One statement with what speaks for and against it, the oldest first."""

    id: str
    key: Key
    evidence: tuple[Evidence, ...]

    def asserted(self) -> list[Evidence]:
        """What speaks for it, the oldest first."""
        return [one for one in self.evidence if not one.retracts]

    def retracted(self) -> list[Evidence]:
        """What speaks against it, the oldest first."""
        return [one for one in self.evidence if one.retracts]


_ROWS: Final = msgspec.json.Decoder(Row)
_EVIDENCE: Final = msgspec.json.Decoder(Evidence)


def rank_of(origin: Origin) -> int:
    """Whose word describes a row: the backend's before a model's before the offline extractor's."""
    return _RANK[origin]


def encode_row(row: Row) -> bytes:
    """As it is stored: JSON."""
    return orjson.dumps(row)


def decode_row(name: str, stored: bytes) -> Row | None:
    """What ``encode_row`` made under that name; None: it is something else, whatever it is."""
    try:
        row = _ROWS.decode(stored)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return row if row.id == name and row.evidence else None


def key_of(subject: str, relation: str, obj: str) -> Key:
    """The key of a statement; ``relation`` may be anybody's name of it."""
    who = normal_subject(subject)
    name = _of(who, normal_relation(relation))
    return Key(who, name, normal_object(name, obj))


def _of(subject: str, relation: str) -> str:
    """A user is not located in a place, but lives there."""
    return "lives_in" if subject == USER and relation == "located_in" else relation


def evidence_of(stated: Stated, now_ms: int) -> tuple[Key, Evidence] | str:
    """What a statement is evidence of, or the code of what is wrong with it. A time yet to come is now."""
    try:
        texts = [clean(text) for text in (stated.subject, stated.relation, stated.object, stated.said)]
        wrong = _wrong(stated, *texts[:3])
    except (AttributeError, TypeError, ValueError):
        return "malformed"
    if wrong:
        return wrong
    subject, relation, obj, said = texts
    key = key_of(subject, relation, obj)
    if not key.subject or not key.relation:
        return "empty"
    retracts, base = stated.retracts, denied(key.relation)
    if base is not None:
        base = _of(key.subject, base)
        key, retracts = Key(key.subject, base, normal_object(base, obj)), True
    made = Evidence(
        source=stated.source,
        origin=stated.origin,
        said_at_ms=min(stated.said_at_ms, now_ms),
        confidence=stated.confidence,
        subject=subject,
        object=obj,
        category=stated.category,
        said=said[:MOST_SAID_CHARACTERS],
        is_entity=stated.is_entity,
        is_single=stated.is_single if known(key.relation) is None else None,
        retracts=retracts,
    )
    checked = _checked(made)
    return (key, checked) if checked is not None else "malformed"


def _checked(made: Evidence) -> Evidence | None:
    """The evidence as it will be read again; None: it could not be, or it could not be withdrawn with its turn."""
    try:
        read = _EVIDENCE.decode(orjson.dumps(made))
    except (msgspec.MsgspecError, TypeError):
        return None
    return read if read.source is not None else None


def _wrong(stated: Stated, subject: str, relation: str, obj: str) -> str:
    if not subject or not relation or (not obj and not stated.retracts):
        return "empty"
    if max(len(subject), len(relation), len(obj)) > MOST_TEXT_CHARACTERS:
        return "too_long"
    if stated.said_at_ms < 0 or stated.said_at_ms > MOST_MS:  # raises for what is no number
        return "malformed"
    if not stated.confidence >= LEAST_CONFIDENCE:  # also when it is not a number
        return "doubtful"
    return ""


def merged(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The evidence without repetitions, the oldest first, and no more than a row keeps. In whatever order it came."""
    told: dict[tuple[Source | None, bool, int], Evidence] = {}
    for one in evidence:
        name = (one.source, one.retracts, one.said_at_ms if one.origin == "backend" else -1)
        told[name] = _better(told[name], one) if name in told else one
    ordered = sorted(told.values(), key=_whole_order)
    return tuple(ordered) if len(ordered) <= MOST_EVIDENCE else _kept(ordered)


def _better(one: Evidence, other: Evidence) -> Evidence:
    """Of two readings of one turn the better one, since when the earlier was noted. In whatever order they are met.

    A sentence that was taken out of one of them, because it told what was deleted, does not come back with the other.
    """
    since = min(one.said_at_ms, other.said_at_ms)
    same_time = [replace(each, said_at_ms=since) for each in (one, other)]
    if one.source is not None and not (one.said and other.said):
        same_time = [replace(each, said="") for each in same_time]
    return max(same_time, key=lambda told: (_RANK[told.origin], told.confidence, _whole_order(told)))


def _whole_order(one: Evidence) -> tuple[Any, ...]:
    return (*one.order(), repr(one))


def _kept(ordered: Sequence[Evidence]) -> tuple[Evidence, ...]:
    asserted = [at for at, one in enumerate(ordered) if not one.retracts]
    by_backend = [at for at in asserted if ordered[at].origin == "backend"]
    always = {
        *asserted[:1],
        *asserted[-1:],
        *by_backend[-1:],
        *[at for at, one in enumerate(ordered) if one.retracts][-1:],
    }
    newest = [at for at in range(len(ordered) - 1, -1, -1) if at not in always][: MOST_EVIDENCE - len(always)]
    return tuple(ordered[at] for at in sorted({*always, *newest}))
