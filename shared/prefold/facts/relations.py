"""One name of a relation, whichever extractor wrote it, so that the newest object can replace the old one."""

import re
from functools import cache, lru_cache

from prefold.facts.kinds import KINDS
from prefold.facts.known_relations import KNOWN, Relation
from prefold.facts.names import normal_name, normal_text

__all__ = ["MOST_RELATION_CHARACTERS", "denied", "group_of", "known", "normal_object", "normal_relation"]

MOST_RELATION_CHARACTERS = 64
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_WORD = re.compile(r"[\W_]+")
_AUXILIARY = re.compile(
    r"^(?:(?:the|users?|my|his|her|their|currently|current|now|new|has_been|have_been|was_recently|recently|is_now|own)_)+(?=.)"
)
_NEGATION = re.compile(
    r"^(?:(?:do|does|did|is|are|was|has)_?(?:not|nt|n_t)|no_longer|not|never|stopped|quit|non?)_(?=.)"
)
_FAVORITE = re.compile(r"(?:favou?rite_|fave_|most_liked_|最(?:喜欢|爱|喜爱)的?_?)(?P<kind>\w+)")
_SHORT_NOT = re.compile(r"\b(do|does|did|is|are|was|has|have|ca|wo)n['’]?t\b", re.IGNORECASE)
_IN_FULL = {"ca": "can", "wo": "will"}


@cache
def _names() -> dict[str, Relation]:
    return {name: one for one in KNOWN for name in (one.name, *one.others)}


def normal_relation(relation: str) -> str:
    """snake_case under the name of ``known_relations``, or as it is where that knows none; "" for nothing at all."""
    words = _HUMP.sub(" ", relation[: 4 * MOST_RELATION_CHARACTERS].replace("_", " "))
    whole = _SHORT_NOT.sub(lambda found: _IN_FULL.get(found[1].lower(), found[1]) + " not", words)
    return _canonical(_snake(_snake(whole)[:MOST_RELATION_CHARACTERS]))


def _snake(text: str) -> str:
    """Words joined by ``_``; taking out what is no word may bring ideographs together, so twice is as once."""
    while (bare := normal_text(_NO_WORD.sub(" ", normal_text(text)))) != text:
        text = bare
    return bare.replace(" ", "_")


def _canonical(snake: str) -> str:
    for name in (snake, _AUXILIARY.sub("", snake), snake.removeprefix("is_"), snake.removeprefix("has_")):
        found = _names().get(name)
        if found is not None:
            return found.name
    bare = _AUXILIARY.sub("", snake)
    favorite = _FAVORITE.match(bare)
    return f"favorite_{KINDS.get(favorite['kind'], favorite['kind'])}" if favorite else bare


def known(relation: str) -> Relation | None:
    """The row of a normalised relation; None: it is none of ours."""
    return _names().get(relation) or (_favorite(relation) if relation.startswith("favorite_") else None)


@lru_cache(maxsize=1024)
def _favorite(relation: str) -> Relation:
    return Relation(relation, "preference", True, f"{{s}}'s {relation.replace('_', ' ')} is {{o}}")


def denied(relation: str) -> str | None:
    """What a normalised relation denies (``no_longer_lives_in``: ``lives_in``), if that holds one object at a time.

    Such a statement ends that row and says nothing else. None: the relation is a statement of its own.
    """
    if known(relation) is not None:
        return None
    bare = _NEGATION.sub("", relation)
    positive = known(_canonical(bare)) if bare != relation else None
    is_over = relation.startswith(("no_longer_", "stopped_", "quit_"))
    return positive.name if positive is not None and (positive.is_single or is_over) else None


def group_of(relation: str) -> str:
    """One name for a relation and its opposite: the same object has only one of the two."""
    row = known(relation)
    if row is not None:
        return min(row.name, row.opposite) if row.opposite else row.name
    bare = _NEGATION.sub("", relation)
    return _canonical(bare) if bare != relation else relation


def normal_object(relation: str, text: str) -> str:
    """Under which an object is the same: a phone number by its digits, anything else as a name."""
    if relation == "phone":
        digits = re.sub(r"\D", "", normal_name(text))
        if digits:
            return digits
    return normal_name(text)
