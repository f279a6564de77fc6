"""Who belongs to a user, wherever in a sentence it is said: ``my sister Anna``, ``two kids, Ben (4) and Mia``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prefold.facts.relations import normal_relation
from prefold.memory.extracting.rule import Rule
from prefold.memory.extracting.shapes import person
from prefold.memory.extracting.vocabulary import KIN, KNOWN_PEOPLE

__all__ = ["AGED", "KINSHIP", "Relative", "named_relatives", "relatives_in"]

_NAME = r"[A-Z][a-zà-ÿ'-]+"
_RELATIVE = re.compile(
    rf"\b[Mm]y\s(?:(?:close|best|good|old|dear|younger|older|elder|little|big|late|beloved|other|new|long[\s-]time|childhood)\s)?(?P<kind>{KIN}|{KNOWN_PEOPLE})(?:\s(?P<object>{_NAME}(?:\s{_NAME})?)(?=[\s,.!;:)]|$)|,\s(?P<apart>{_NAME})(?=,\s(?!and\b)))"
)
_AGE = r"(?P<age>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?=\syears?[\s-]old|[,.!;]|$|\s(?:and|now|already|but)\b)"
_AGED = re.compile(
    rf"(?i:(?:my|our)\s(?:only\s|little\s)?(?P<kind>daughter|son))(?:,?\s(?P<name>{_NAME}),?)?(?:\sis|'s|\s(?:just\s|has\s(?:just\s)?)?turned)(?:\snow|\salready|\sonly)?\s{_AGE}"
)
_AGED_WIDE = re.compile(
    r"我(?:们)?的?(?P<kind>女儿|儿子)(?P<name>(?!今年|已经|现在|快|刚|才|都)[一-龥]{2,3})?(?:今年|已经|现在|快|刚满|才|都)*(?P<age>\d{1,2}|[一二三四五六七八九十]{1,3})岁"
)
_ONE = rf"{_NAME}(?:\s?\(\d{{1,2}}\))?"
_LISTED = re.compile(
    rf"\b(?:[Ii]|[Ww]e)(?:'ve|\shave)?(?:\salso)?(?:\s(?:have|got|own|adopted))?\s(?:two|three|four|five|six|\d|an?)\s(?:\w+\s)?(?P<kind>kids?|child(?:ren)?|sons?|boys|daughters?|girls|brothers?|sisters?|dogs?|cats?|horses?)(?:\scalled|\snamed|,|:|\s-)\s(?P<names>{_ONE}(?:(?:,\s|,?\sand\s|\s&\s){_ONE})*)(?=[\s,.!;]|$)"
)
_SINGULAR = {"kids": "child", "kid": "child", "children": "child", "boys": "son", "girls": "daughter"}

KINSHIP = Rule("{kind}", _RELATIVE, person, 0.85)
AGED = Rule("age", _AGED, person, 0.85)


@dataclass(frozen=True, slots=True)
class Relative:
    """Who a user told of, and what."""

    rule: Rule
    subject: str
    """``user``, or the relative's name: whose age it is."""
    relation: str
    named: str


def relatives_in(clause: str) -> Iterator[Relative]:
    """Relatives that ``clause`` names, whatever it says of them; of one's children their age."""
    for found in _RELATIVE.finditer(clause):
        for name in person((found["object"] or found["apart"]).removesuffix("'s")):
            yield Relative(KINSHIP, "user", normal_relation(found["kind"]), name)
    for found in (*_AGED.finditer(clause), *_AGED_WIDE.finditer(clause)):
        kind = normal_relation(found["kind"])
        yield Relative(AGED, found["name"] or "user", "age" if found["name"] else f"{kind}_age", found["age"])


def named_relatives(sentence: str) -> Iterator[Relative]:
    """Relatives that ``sentence`` lists by their names, with their ages where they stand behind them."""
    for found in _LISTED.finditer(sentence):
        kind = found["kind"]
        relation = normal_relation(_SINGULAR.get(kind, kind.removesuffix("s")))
        for one in re.finditer(rf"({_NAME})(?:\s?\((\d{{1,2}})\))?", found["names"]):
            yield Relative(KINSHIP, "user", relation, one[1])
            if one[2] and relation in ("child", "son", "daughter"):
                yield Relative(AGED, one[1], "age", one[2])
