"""How people say in English that something is over.

Patterns begin where a clause begins; see ``rule`` for their short forms.
"""

import re

from prefold.memory.extracting.rule import Rule, english
from prefold.memory.extracting.shapes import email, phone, phrase, place, things
from prefold.memory.extracting.vocabulary import OWNED

__all__ = ["ENDED", "SAYS_NO_LONGER"]

ENDED: tuple[Rule, ...] = (
    english(
        "lives_in",
        r"i(?:~ no longer live|~ (?:don't|do not) live|(?:'ve| have)? moved (?:away|out)) (?:in|from|of)",
        place,
        retracts=True,
    ),
    english(
        "email",
        r"my(?: personal| private| main| old| current)? e-?mail(?: address)?(?:(?:'s| is) no longer|(?:'s| is) not|~ isn't)",
        email,
        retracts=True,
    ),
    english(
        "phone",
        r"my(?: old| current)? (?:phone|cell|mobile|telephone)(?: number)?(?:(?:'s| is) no longer|(?:'s| is) not|~ isn't)",
        phone,
        retracts=True,
    ),
    english(
        "works_at",
        r"i(?:~ no longer work|~ (?:don't|do not) work|(?:'ve| have)? stopped working|(?:'ve| have)? quit(?: my job)?) (?:at|for)",
        place,
        retracts=True,
    ),
    english("likes", r"i(?:~ no longer|~ don't) (?:like|love|enjoy)", things, retracts=True),
    english("eats", r"i(?:~ no longer|~ don't) eat", things, retracts=True),
    english(
        "does_not_eat",
        r"i(?:'ve| have)?(?: now| started| can)*(?: eat|eating)",
        things,
        retracts=True,
    ),
    english("allergic_to", r"(?:I'M no longer|I'M not) allergic to", things, retracts=True),
    english(
        "diet",
        r"(?:I'M no longer|I'M not)(?: an?)?(?= (?:vegan|vegetarian|pescatarian)\b)",
        phrase,
        retracts=True,
    ),
    english("plays", r"i(?:~ no longer|~ don't) play(?: the)?", things, retracts=True),
    english(
        "owns",
        rf"i(?:~ no longer (?:have|own|drive)|~ don't (?:have|own)|(?:'ve| have)?(?: just)? sold)(?= (?:my|an?|the) (?:[\w'-]+ ){{0,2}}?{OWNED}\b)",
        phrase,
        retracts=True,
    ),
)

SAYS_NO_LONGER = re.compile(
    r"\bno longer\b|\bnot (?:an? )?(?:allergic to|vegan|vegetarian|pescatarian)\b|\b(?:don't|do not) (?:live in|work (?:at|for))\b|\b(?:not|isn't) [\w.+-]+@|\b(?:not|isn't) \+?\(?\d|\bany ?more\b|\bany longer\b|\bagain\b|\bmoved (?:away|out)\b|\bstopped working\b|\bquit\b|\bsold\b",
    re.IGNORECASE,
)
"""Without it no rule of ``ENDED`` holds."""
