"""A model's words for relations and categories as ``prefold.facts`` names them."""

import re
from typing import Final

from prefold.facts.relations import known, normal_relation
from prefold.facts.rows import CATEGORIES, Category

__all__ = ["category_of", "relation_of"]

_CATEGORY_ALIASES: Final[dict[str, Category]] = {
    "personal": "identity",
    "demographics": "identity",
    "bio": "identity",
    "place": "location",
    "residence": "location",
    "job": "work",
    "career": "work",
    "education": "work",
    "professional": "work",
    "relationship": "family",
    "relationships": "family",
    "pets": "family",
    "medical": "health",
    "diet": "health",
    "allergy": "health",
    "preferences": "preference",
    "hobby": "preference",
    "hobbies": "preference",
    "interest": "preference",
    "interests": "preference",
    "instructions": "instruction",
    "constraints": "constraint",
    "plans": "plan",
    "goal": "plan",
    "goals": "plan",
    "possessions": "possession",
}
_MOST_CHARACTERS = 40


def relation_of(said: str) -> str:
    """``said`` under its one name, or empty where it cannot be a relation."""
    name = normal_relation(said.strip()[:200])
    return name if len(name) <= _MOST_CHARACTERS and re.search(r"[^\d_]", name) else ""


def category_of(said: object, relation: str) -> Category:
    """Of a relation that is known its own; else what ``said`` means."""
    if row := known(relation):
        return row.category
    name = said.strip().lower() if isinstance(said, str) else ""
    for category in CATEGORIES:
        if name == category:
            return category
    return _CATEGORY_ALIASES.get(name, "other")
