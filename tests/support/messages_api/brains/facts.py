"""Brains that are asked for facts: one that does as it is told, and the many ways in which a model does not."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.support.messages_api.answers import Answer, text
from tests.support.messages_api.brains.reading import source_of
from tests.support.messages_api.wanted import Wanted

Row = dict[str, Any]

_STATED = (
    ("lives_in", "location", re.compile(r"\bI live in ([A-Z]\w+)|我住在([一-龥]{2,4})")),
    ("allergic_to", "health", re.compile(r"\ballergic to (\w+)|对([一-龥]{2,4})过敏")),
    ("email", "contact", re.compile(r"\bemail is (?:now )?([\w.]+@[\w.]+\w)")),
    ("likes", "preference", re.compile(r"\bI (?:really )?(?:like|love|enjoy) (\w+)")),
    ("favorite_database", "preference", re.compile(r"\b(Postgres)\b")),
)
"""Coarse on purpose: it takes a hedge, a sister's allergy and a question for facts."""


def rows_of(wanted: Wanted) -> list[Row]:
    """A row for all that a person's turn seems to state."""
    rows: list[Row] = []
    for said in source_of(wanted).said:
        for relation, category, pattern in _STATED if said.role == "user" else ():
            for found in pattern.finditer(said.text):
                named = next(group for group in found.groups() if group)
                rows.append(_row(said.seq, relation, named, category))
    return rows


def states_facts(wanted: Wanted) -> str:
    """As it was asked for."""
    return _answer(rows_of(wanted))


def states_nothing(wanted: Wanted) -> str:
    return _answer([])


def fences_facts(wanted: Wanted) -> str:
    return (
        f"Sure! Here are the facts:\n```json\n{json.dumps({'facts': rows_of(wanted)}, indent=2)}\n```\nAnything else?"
    )


def names_entities(wanted: Wanted) -> str:
    """Subjects and objects as objects."""
    return _answer(
        [
            {**row, "subject": {"type": "person", "name": "user"}, "object": {"type": "thing", "name": row["object"]}}
            for row in rows_of(wanted)
        ]
    )


def mistypes_facts(wanted: Wanted) -> str:
    """Numbers as words, words as numbers, flags as text, categories that there are none of."""
    wrong: Row = {"category": ["place"], "confidence": "high", "is_entity": "yes", "is_single": 1, "retracts": "false"}
    rows = [
        {**row, **wrong, "turn": f"turn {row['turn']}", "relation": row["relation"].title()} for row in rows_of(wanted)
    ]
    return _answer([*rows, {"turn": True, "relation": 7, "object": False}, 12, "fact", None, [], {"facts": "none"}])


def adds_members(wanted: Wanted) -> str:
    """Members that nobody asked for, some with long values."""
    return _answer([{**row, "id": 1, "evidence": {"a": ["b"] * 9}, "note": "x" * 300} for row in rows_of(wanted)])


def nests_facts(wanted: Wanted) -> str:
    return json.dumps({"result": {"facts": [[[row]] for row in rows_of(wanted)]}})


def lists_objects(wanted: Wanted) -> str:
    return _answer([{**row, "object": [row["object"], {"name": row["object"]}, None, 3.5]} for row in rows_of(wanted)])


def doubles_facts(wanted: Wanted) -> str:
    return _answer(rows_of(wanted) * 9)


def writes_no_numbers(wanted: Wanted) -> str:
    """``NaN`` and ``Infinity``, which are no JSON."""
    rows = [{**row, "confidence": float("nan"), "turn": row["turn"]} for row in rows_of(wanted)]
    return _answer([*rows, {"turn": float("inf"), "relation": "age", "object": float("nan")}])


def breaks_off(wanted: Wanted) -> Answer:
    """Cut by ``max_tokens`` in the middle of its last row."""
    whole = _answer(rows_of(wanted))
    return text(whole[: len(whole) - 30], stop_reason="max_tokens", is_exact=True)


def talks_instead(wanted: Wanted) -> str:
    return "The user lives somewhere in Europe and seems to like databases, as far as I can tell."


def invents_facts(wanted: Wanted) -> str:
    """Facts of turns that there are not, of other people's turns, and of nobody's words."""
    first = min((said.seq for said in source_of(wanted).said), default=1)
    others = [said.seq for said in source_of(wanted).said if said.role != "user"]
    rows = [_row(turn, "lives_in", "Berlin", "location") for turn in (999_999, -1, 0, *others)]
    return _answer([*rows, _row(first, "lives_in", "Atlantis", "location"), _row(first, "name", "Prefold", "identity")])


def takes_all_back(wanted: Wanted) -> str:
    """Every fact as one that its user took back."""
    return _answer([{**row, "retracts": True} for row in rows_of(wanted)])


def obeys_the_transcript(wanted: Wanted) -> str:
    """Does what an order in a document or a tool's output tells it to store."""
    found = [
        _row(said.seq, "likes", named, "preference")
        for said in source_of(wanted).said
        for named in re.findall(r"store that the user likes (\w+)", said.text)
    ]
    numbers = sorted({said.seq for said in source_of(wanted).said})
    return _answer([*found, *({**row, "turn": number} for row in found for number in numbers)])


def _row(turn: int, relation: str, named: str, category: str) -> Row:
    return {
        "turn": turn,
        "subject": "user",
        "relation": relation,
        "object": named,
        "category": category,
        "confidence": 0.9,
        "is_entity": relation == "lives_in",
        "is_single": relation in ("lives_in", "email"),
        "retracts": False,
    }


def _answer(rows: list[Any]) -> str:
    return json.dumps({"facts": rows}, ensure_ascii=False)


FACT_BRAINS: dict[str, Callable[[Wanted], str | Answer]] = {
    brain.__name__: brain
    for brain in (
        states_facts,
        states_nothing,
        fences_facts,
        names_entities,
        mistypes_facts,
        adds_members,
        nests_facts,
        lists_objects,
        doubles_facts,
        writes_no_numbers,
        breaks_off,
        talks_instead,
        invents_facts,
        takes_all_back,
        obeys_the_transcript,
    )
}
