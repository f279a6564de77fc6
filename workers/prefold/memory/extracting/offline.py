"""Facts out of turns without a model: what users plainly state about themselves, in English and Chinese.

It would rather miss ten facts than store one that nobody stated.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prefold.facts.relations import known, normal_relation
from prefold.facts.rows import Source, Stated
from prefold.memory.extracting.clauses import Clause, clauses_of, stated_part, without_filler
from prefold.memory.extracting.hedges import doubtful, is_doubtful, is_joke, why_no_statement
from prefold.memory.extracting.pointing import said_out, said_out_wide
from prefold.memory.extracting.relatives import Relative, named_relatives, relatives_in
from prefold.memory.extracting.rule import Rule, without_lead
from prefold.memory.extracting.rules import CHINESE, ENGLISH, LEAD_CHINESE
from prefold.memory.extracting.rules_chinese_ended import ENDED_CHINESE, SAYS_NO_LONGER_CHINESE
from prefold.memory.extracting.rules_english_ended import ENDED, SAYS_NO_LONGER
from prefold.memory.extracting.said import OwnSentence, own_sentences, said_at_ms
from prefold.memory.extracting.shapes import place
from prefold.storage.types import SessionRef, StoredTurn

__all__ = ["Match", "extract_offline", "source_of", "stated_in"]

MOST_SAID = 300
"""Characters of the sentence that a row keeps."""
_WIDE = re.compile(r"[\u3400-\u9fff]")
_OWN_ENGLISH = re.compile(r"(?<![a-zA-Z])(?:I|I'm|my|My|I've)\s[^我]*$")
"""English with names in ideographs."""
_KANA = re.compile(r"[\u3040-\u30ff]")
_PERSONAL = re.compile(r"\b(?:i|i'm|im|i've|my|me|we|we're|we've|our)\b", re.IGNORECASE)
_HEADLESS = re.compile(r"(?:can't|cannot)\s(?:stand|eat|drink)\b", re.IGNORECASE)
_HEADLESS_BE = re.compile(
    r"(?P<what>allergic\sto\b|based\sin\b)|as\s(?P<diet>an?\s(?:vegan|vegetarian|pescatarian|diabetic|celiac|coeliac)\W*$)",
    re.IGNORECASE,
)
"""What chats leave the subject out of."""
_ORDERS = tuple(rule for rule in ENGLISH if rule.relation in ("instruction", "answer_language"))
"""All that can be stated without a word for oneself."""
_BINDING = frozenset({"condition"})
"""What an instruction or a limit may have in it: "always ask me if you are unsure"."""


@dataclass(frozen=True, slots=True)
class Match:
    """What one rule found in one clause."""

    rule: Rule
    relation: str
    named: str
    clause: str
    """The clause's own words, without what leads up to it."""
    subject: str = "user"
    """Or a name: whose age it is."""


def extract_offline(turns: Sequence[StoredTurn], ref: SessionRef, *, stored_at_ms: int = 0) -> list[Stated]:
    """What the users of ``turns`` state about themselves, in order, each once a turn. Deterministic.

    ``stored_at_ms`` stands for the time of turns whose producer told none.
    """
    found: dict[tuple[str, str, str, str, bool], Stated] = {}
    for sentence in own_sentences(turns):
        for match in stated_in(sentence):
            key = (sentence.turn.id, match.subject, match.relation, match.named.casefold(), match.rule.retracts)
            found.setdefault(key, _row(sentence, match, ref, stored_at_ms))
    return list(found.values())


def stated_in(sentence: OwnSentence) -> Iterator[Match]:
    """What its user states about themself in ``sentence``."""
    text = stated_part(without_filler(sentence.text))
    if not text or _KANA.search(text):
        return
    is_wide = bool(_WIDE.search(text)) and not _OWN_ENGLISH.search(text)
    before = sentence.preceding if stated_part(sentence.preceding) and not is_doubtful(sentence.preceding) else ""
    clauses = (said_out_wide if is_wide else said_out)(list(clauses_of(text, is_wide=is_wide)), before)
    found = [(at, one) for at, clause in enumerate(clauses) for one in _matches(clause, sentence, is_wide=is_wide)]
    listed = [] if sentence.quotes else [_match_of(one, text) for one in named_relatives(text)]
    if not (found or listed) or is_joke(sentence.text, sentence.following):
        return
    doubt = why_no_statement(text)
    if doubt is None or doubt in _BINDING:
        doubts = doubtful([clause.text for clause in clauses])
        yield from (one for at, one in found if one.rule.binds or (doubt is None and not doubts[at]))
        yield from listed if doubt is None and not any(doubts) else ()


def _matches(clause: Clause, sentence: OwnSentence, *, is_wide: bool) -> Iterator[Match]:
    """What ``clause`` seems to state; nothing of one that opens in quotation marks."""
    if any(start <= clause.at + 1 < end for start, end in sentence.quotes):
        return
    said, rules, ended = _wide_rules(clause) if is_wide else _english_rules(clause)
    seen: set[str] = set()
    for rule in (*ended, *rules):
        opened = rule.pattern.match(said)
        if opened is None or rule.relation in seen:
            continue
        for relation, named in _found(rule, opened, said):
            seen.add(rule.relation)
            yield Match(rule, relation, named, said)
    yield from (_match_of(one, clause.text.strip()) for one in relatives_in(clause.text))


def source_of(turn: StoredTurn, ref: SessionRef) -> Source:
    """Where a row came from."""
    return Source(ref.session, ref.incarnation, turn.id, turn.seq, turn.revision)


def _row(sentence: OwnSentence, match: Match, ref: SessionRef, stored_at_ms: int) -> Stated:
    relation = known(match.relation)
    return Stated(
        subject=match.subject,
        relation=match.relation,
        object=match.named,
        category=relation.category if relation else "other",
        confidence=match.rule.confidence,
        said=" ".join(sentence.text.split())[:MOST_SAID],
        source=source_of(sentence.turn, ref),
        said_at_ms=said_at_ms(sentence.turn, stored_at_ms),
        is_entity=bool(relation and relation.is_entity) and not _is_common(match.named, match.clause),
        is_single=bool(relation and relation.is_single),
        retracts=match.rule.retracts,
    )


def _match_of(relative: Relative, said: str) -> Match:
    return Match(relative.rule, relative.relation, relative.named, said, relative.subject)


def _english_rules(clause: Clause) -> tuple[str, tuple[Rule, ...], tuple[Rule, ...]]:
    said = clause.text[without_lead(clause.text) :].strip()
    if headless := _HEADLESS_BE.match(said):
        said = f"I'm {headless['what'] or headless['diet']}{said[headless.end() :]}"
    elif clause.is_shared or _HEADLESS.match(said):
        said = f"I {said}"
    if not _PERSONAL.search(said):
        return said, _ORDERS, ()
    return said, ENGLISH, ENDED if SAYS_NO_LONGER.search(said) else ()


def _wide_rules(clause: Clause) -> tuple[str, tuple[Rule, ...], tuple[Rule, ...]]:
    found = LEAD_CHINESE.match(clause.text)
    said = clause.text[found.end() if found else 0 :].strip()
    said = said if "我" in said or not clause.is_shared else f"我{said}"
    return said, CHINESE, ENDED_CHINESE if SAYS_NO_LONGER_CHINESE.search(said) else ()


def _found(rule: Rule, found: re.Match[str], said: str) -> list[tuple[str, str]]:
    kind = found.groupdict().get("kind")
    relation = normal_relation(rule.relation.replace("{kind}", kind)) if kind else rule.relation
    return [
        (relation, named)
        for named in rule.shape(found["object"])
        if not (rule.shape is place and _is_common(named, said))
    ]


def _is_common(named: str, said: str) -> bool:
    """Whether ``named`` is in small letters though its writer uses capitals: no name, then."""
    return named[:1].islower() and not named.startswith("the ") and said[:1].isupper()
