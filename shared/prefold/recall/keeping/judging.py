"""Why a turn is not embedded, if so."""

from collections.abc import Mapping
from typing import Final, Literal

from prefold.recall.keeping.phrases import Tokens, begins, holds, tokens_of
from prefold.recall.keeping.rules import Rules, packaged_rules
from prefold.recall.keeping.spoken import Spoken, is_structured, read_spoken
from prefold.recall.words import words_of

Reason = Literal[
    "greeting", "farewell", "acknowledgement", "settled_question", "settled_reply", "known_output", "raw_output"
]

_ASKING: Final = ("?", "？", "؟")
_ENDING: Final = (". ", "! ", "。", "！", "\n")
_OF_KIND: Final[Mapping[str, Reason]] = {"greeting": "greeting", "farewell": "farewell"}
_CHARS_A_WORD: Final = 30
"""A text that is longer has more words than it may have, and is not cut into them to be told so."""


def why_not(
    turn_json: bytes, previous: bytes | None, following: bytes | None, rules: Rules | None = None
) -> Reason | None:
    """Why this turn is not to be embedded; None: it is.

    All three as they were published (``StoredTurn.verbatim_json``); None where there is no such turn, or none yet:
    then what hangs on it is kept. Pure, so that doing it again says the same as long as the neighbours are the same.
    """
    rules = rules or packaged_rules()
    turn = read_spoken(turn_json)
    before, after = (read_spoken(other) if other else None for other in (previous, following))
    if turn.is_talk:
        return _small_talk(turn, before, after, rules) or _settled(turn, before, after, rules)
    return _output(turn, after, rules) if turn.is_output and after else None


def hangs_on_others(
    turn_json: bytes, following: bytes | None, *, is_last: bool = False, rules: Rules | None = None
) -> bool:
    """True if another turn in the place of one beside it might have had this one passed over.

    Never false for a turn that was passed over because of its neighbours and says what they do not. ``is_last``:
    nothing has ever followed it.
    """
    rules = rules or packaged_rules()
    turn, after = read_spoken(turn_json), read_spoken(following) if following else None
    tokens = _few_words(turn.text, rules.limits.small_talk_words) if turn.is_talk else ()
    if "agreement" in (rules.small_talk.kinds_in(tokens) or ()):
        return True
    if is_last or not turn.is_talk:
        return turn.is_output and not is_last
    is_short = bool(_few_words(turn.text, rules.limits.reply_words)) and _states(turn, rules)
    return (after is None or after.role != turn.role) and (is_short or _clarifies(turn, rules))


def _small_talk(turn: Spoken, before: Spoken | None, after: Spoken | None, rules: Rules) -> Reason | None:
    tokens = _few_words(turn.text, rules.limits.small_talk_words)
    if not tokens:
        return None
    names = [tokens_of(other.name) for other in (before, after) if other]
    kinds = rules.small_talk.kinds_in(tokens, [*names, *(name[:1] for name in names)])
    if not kinds or not (said := [kind for kind in kinds if kind != "filler"]):
        return None
    if "agreement" in said and _may_answer(turn, before, rules):
        return None
    return _OF_KIND.get(said[0], "acknowledgement")


def _may_answer(turn: Spoken, before: Spoken | None, rules: Rules) -> bool:
    """True if something was asked or offered before, in doubt too."""
    if before is None or before.role == turn.role or not before.is_talk:
        return True
    return _has_mark(before) or holds(tokens_of(before.text), rules.asked)


def _settled(turn: Spoken, before: Spoken | None, after: Spoken | None, rules: Rules) -> Reason | None:
    """A question about what was meant, when the reply picks from it; the reply, when the next turn says it again.

    Either way the turn that comes next is one that stays, or one that is settled by the turn after it.
    """
    if after is None or after.role == turn.role:
        return None
    if _clarifies(turn, rules):
        return "settled_question" if _picks(after, turn, rules) else None
    if before is None or before.role == turn.role or not _clarifies(before, rules):
        return None
    is_told = _picks(turn, before, rules) and _states(after, rules) and _words(turn) <= _words(after)
    return "settled_reply" if is_told else None


def _clarifies(turn: Spoken, rules: Rules) -> bool:
    """One question, and nothing else."""
    text = turn.text.strip()
    if not turn.is_talk or not text.endswith(_ASKING) or any(mark in text[:-1] for mark in (*_ASKING, *_ENDING)):
        return False
    return begins(_few_words(text, rules.limits.question_words), rules.clarification)


def _picks(reply: Spoken, question: Spoken, rules: Rules) -> bool:
    """True if the reply is short, and plainly repeats a part of the question."""
    if not _few_words(reply.text, rules.limits.reply_words) or not _states(reply, rules):
        return False
    words = _words(reply)
    return bool(words) and words <= _words(question)


def _states(turn: Spoken, rules: Rules) -> bool:
    """True if it says something, and neither asks nor denies."""
    tokens = tokens_of(turn.text)
    is_plain = turn.is_talk and not _has_mark(turn) and not holds(tokens, rules.denial)
    return is_plain and rules.small_talk.kinds_in(tokens) is None


def _output(turn: Spoken, after: Spoken, rules: Rules) -> Reason | None:
    """Output of which the text that follows says every word; or a long run of it, once there is a text on it.

    Structured output is kept however long it is: identifiers and amounts in it are asked for, and no text repeats all.
    """
    if not _words(after) or rules.small_talk.kinds_in(tokens_of(after.text)):
        return None
    size, words = len(turn.results.split()), frozenset(words_of(turn.results))
    if size < rules.limits.raw_output_words:
        return "known_output" if words and words <= _words(after) else None
    is_told = len(tokens_of(after.text)) >= rules.limits.conclusion_words
    return "raw_output" if is_told and not is_structured(turn.results) else None


def _few_words(text: str, most: int) -> Tokens:
    """The words; none if there are more than so many."""
    tokens = tokens_of(text) if len(text) <= most * _CHARS_A_WORD else ()
    return tokens if len(tokens) <= most else ()


def _has_mark(turn: Spoken) -> bool:
    return any(mark in turn.text for mark in _ASKING)


def _words(turn: Spoken) -> frozenset[str]:
    return frozenset(words_of(turn.text))
