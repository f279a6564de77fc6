"""The rules as data: what ``rules.toml`` says."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from prefold.recall.keeping.phrases import Phrases, Tokens, tokens_of

SMALL_TALK: Final = ("greeting", "farewell", "acknowledgement", "agreement", "filler")
"""Kinds of phrases; where one stands in two of them, the first counts."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of words; the first three at most, the others at least."""

    small_talk_words: int
    question_words: int
    reply_words: int
    raw_output_words: int
    """From so many on, output of a tool is no more than raw material once there is a text on it."""
    conclusion_words: int
    """So many that text has at least."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The tables, ready for use."""

    limits: Limits
    small_talk: Phrases
    asked: frozenset[Tokens]
    clarification: frozenset[Tokens]
    denial: frozenset[Tokens]


@cache
def packaged_rules() -> Rules:
    """Those of ``rules.toml``."""
    return read_rules(files("prefold.recall.keeping").joinpath("rules.toml").read_text("utf-8"))


def read_rules(text: str) -> Rules:
    """From TOML. ``KeyError``, ``TypeError`` or ``ValueError`` when a table is missing or has another form."""
    tables = tomllib.loads(text)

    def phrases(name: str) -> frozenset[Tokens]:
        return frozenset(map(tokens_of, _of_all_languages(tables[name])))

    return Rules(
        limits=Limits(**tables["limits"]),
        small_talk=Phrases({kind: _of_all_languages(tables[kind]) for kind in SMALL_TALK}),
        asked=phrases("asked"),
        clarification=phrases("clarification"),
        denial=phrases("denial"),
    )


def _of_all_languages(table: dict[str, Any]) -> Iterable[str]:
    return [phrase for phrases in table.values() for phrase in phrases]
