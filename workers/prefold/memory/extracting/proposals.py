"""Entries for the pinned state, out of what users stated: what binds, what was decided, what they are after."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from prefold.memory.extracting.clauses import clauses_of, stated_part
from prefold.memory.extracting.hedges import is_joke, why_no_statement
from prefold.memory.extracting.offline import stated_in
from prefold.memory.extracting.rule import without_lead
from prefold.memory.extracting.said import OwnSentence, own_sentences
from prefold.pinned import Proposed
from prefold.storage.types import StoredTurn

__all__ = ["propose"]

MOST_CHARACTERS = 240
_BINDING = frozenset(
    {
        "can_only",
        "budget",
        "cannot",
        "does_not",
        "deadline",
        "allergic_to",
        "intolerant_to",
        "diet",
        "dietary_need",
        "does_not_eat",
        "does_not_drink",
        "instruction",
        "answer_language",
    }
)
_DOING = r"(?:plan|build|create|make|write|develop|design|set\sup|organi[sz]e|launch|learn|find|buy|rent|book|prepare|migrate|deploy|implement|fix|finish|publish|start|open|improve|move|study|renovate|cook|train|run|lose|save)"
_DECIDED = re.compile(
    r"(?:(?:i|we)(?:'ve|\shave)?\s(?:just\s|now\s|finally\s|already\s|both\s|all\s)*(?:decided\s(?:to|on|that|against)|chose|chosen|picked|settled\son|agreed\s(?:to|on|that)|opted\s(?:for|to)|(?:'ll|will|are|am|'re)?\s?(?:going|go|going\sto\sgo)\swith|ruled\sout)\s\S"
    r"|(?:i'll|we'll|i\swill|we\swill|i'm\sgoing\sto|let's|let\sus)\s(?:go\swith|stick\swith|stick\sto|settle\son)\s(?!it\b|that\b|this\b)\S|(?:the|my|our)\s(?:final\s)?(?:decision|choice)\sis\s)",
    re.IGNORECASE,
)
_DECIDED_WIDE = re.compile(
    r"(?:我|我们|咱们)?(?:已经|最终|最后|就)?(?:决定(?!不了|权)|选择了|选定了|选了|确定(?:了|用|选)|敲定了?|定下来)(?:了)?[^，,。！]{2,}|就(?:用|选|定)(?!这|那|它)[^，,。！]{2,}(?:吧|了)$"
)
_GOAL = re.compile(
    rf"(?:(?:my|our|the)\s(?:main\s|ultimate\s|overall\s)?(?:goal|aim|objective)(?:\sis|'s)(?:\sto)?\s\S|(?:i|we)\s(?:want|need|have)\sto\s{_DOING}\s|(?:i'm|i\sam|we're|we\sare)\s(?:trying|working|looking|planning|aiming)\sto\s{_DOING}\s)",
    re.IGNORECASE,
)
_GOAL_WIDE = re.compile(
    r"(?:我|我们)的?目标(?:就)?是|(?:我|我们)(?:想|要|需要|打算|准备|正在)(?:要)?(?:计划|做一|写一|开发|设计|建立|搭建|组织|准备|学习|学会|规划|安排|策划|完成)"
)
_WIDE = re.compile(r"[\u3400-\u9fff]")


def propose(turns: Sequence[StoredTurn]) -> list[Proposed]:
    """Constraints and decisions of the users of ``turns``, and the goal that they stated first. In order, each once."""
    found: dict[tuple[str, str], Proposed] = {}
    has_goal = False
    for sentence in own_sentences(turns):
        for field, value in _entries(sentence):
            if field == "goal":
                if has_goal:
                    continue
                has_goal = True
            found.setdefault((field, value.casefold()), Proposed(field, value, sentence.turn.seq, sentence.turn.id))
    return list(found.values())


def _entries(sentence: OwnSentence) -> Iterator[tuple[Literal["goal", "constraints", "decisions"], str]]:
    binding = [row for row in stated_in(sentence) if row.rule.relation in _BINDING and not row.rule.retracts]
    yield from (("constraints", _short(one)) for one in dict.fromkeys(row.clause for row in binding))
    text = stated_part(sentence.text)
    if not text or sentence.quotes or is_joke(sentence.text, sentence.following):
        return
    doubt = why_no_statement(text)
    is_wide = bool(_WIDE.search(text))
    for clause in clauses_of(text):
        said = clause.text.strip() if is_wide else clause.text[without_lead(clause.text) :].strip()
        if doubt is None and (_DECIDED_WIDE if is_wide else _DECIDED).match(said):
            yield "decisions", _short(said)
        elif doubt is None and (_GOAL_WIDE if is_wide else _GOAL).match(said):
            yield "goal", _short(said)


def _short(text: str) -> str:
    folded = " ".join(text.split()).strip(" ,;")
    return folded if len(folded) <= MOST_CHARACTERS else folded[:MOST_CHARACTERS].rsplit(" ", 1)[0] + " …"
