"""What a backend says of a user, checked and made evidence."""

import math
from dataclasses import replace

from prefold.errors import InvalidInputError
from prefold.facts.evidence import MOST_EVIDENCE, MOST_MS, MOST_TEXT_CHARACTERS, Evidence, Key, key_of
from prefold.facts.names import clean
from prefold.facts.outcomes import NewFact
from prefold.facts.relations import denied, known
from prefold.facts.rows import CATEGORIES, Category

__all__ = ["given_evidence"]


def given_evidence(new: NewFact, now_ms: int) -> tuple[Key, list[tuple[Key, Evidence]]]:
    """The row's key and one piece of evidence a source, or one without. ``InvalidInputError`` names the field."""
    texts = {name: clean(getattr(new, name)) for name in ("subject", "relation", "object")}
    key = key_of(texts["subject"], texts["relation"], texts["object"])
    for name, text in texts.items():
        if not text or not getattr(key, name):
            raise InvalidInputError(f"{name} must not be empty", field=name)
        if len(text) > MOST_TEXT_CHARACTERS:
            raise InvalidInputError(f"{name} must have at most {MOST_TEXT_CHARACTERS} characters", field=name)
    if denied(key.relation) is not None:
        raise InvalidInputError("a fact that is over is deleted or corrected", field="relation")
    confidence = 1.0 if new.confidence is None else new.confidence
    if not math.isfinite(confidence) or not 0 <= confidence <= 1:
        raise InvalidInputError("confidence must be within 0 to 1", field="confidence")
    if new.expires_at_ms is not None and not 0 <= new.expires_at_ms <= MOST_MS:
        raise InvalidInputError("expires_at must be a time up to the year 9999", field="expires_at_ms")
    if len(new.sources) >= MOST_EVIDENCE:
        raise InvalidInputError(f"a fact has fewer than {MOST_EVIDENCE} sources", field="sources")
    made = Evidence(
        source=None,
        origin="backend",
        said_at_ms=now_ms,
        confidence=confidence,
        subject=texts["subject"],
        object=texts["object"],
        category=_category(new, key),
        is_entity=_is_entity(new, key),
        is_single=new.is_single if known(key.relation) is None else None,
        expires_at_ms=new.expires_at_ms,
    )
    return key, [(key, replace(made, source=source)) for source in new.sources or (None,)]


def _is_entity(new: NewFact, key: Key) -> bool:
    relation = known(key.relation)
    return new.is_entity if new.is_entity is not None else relation is not None and relation.is_entity


def _category(new: NewFact, key: Key) -> Category:
    if new.category is not None:
        if new.category not in CATEGORIES:
            raise InvalidInputError("there is no such category", field="category")
        return new.category
    relation = known(key.relation)
    return relation.category if relation is not None else "other"
