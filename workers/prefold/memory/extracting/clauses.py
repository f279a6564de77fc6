"""A sentence into the clauses that can state something, its question cut off. English; Chinese at its commas."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Clause", "clauses_of", "stated_part", "without_filler"]

_SUBJECT = (
    r"(?:i|i'm|i've|i'll|i'd|im|ive|my|we|we're|we've|our|he|he's|she|she's|they|they're|it|it's|you|you're|your|(?:his|her|its)\snames?|the\snew\sone|new\sone|this|that|that's|there|there's|everyone|the|please|thanks|don't|do\snot|never\s(?:use|send|call|write|mention|suggest)"
    r"|always\s(?:use|send|write|answer|reply|include|give|format|respond|speak|call|show|provide|add|put|start|end|keep))\b"
)
_VERBS = r"(?:live|work|love|like|enjoy|hate|dislike|prefer|have|own|study|am|play|speak|drive|teach|run|can't|cannot|can\sonly|don't|never\s(?:eat|drink)|currently|also\s(?:love|like|enjoy|have|play|speak)|moved|adore|need|want|use|collect|keep|eat|drink|take|wear|weigh|follow|grew\sup|allergic\sto)\b"
_ASKING = r"(?:what|what's|how|how's|why|when|where|which|who|whose|whom|is|isn't|are|aren't|am|was|were|do|don't\syou|does|doesn't|did|didn't|can|can't|could|would|will|won't|should|shall|may|might|have\syou|has|any|anything|right|is\sthere|got\sany|wanna|care\sto|mind|so\swhat|please\s(?:can|could)|if\syou|if\sso)"
_BOUNDARY = re.compile(
    rf"""\s*[;—]\s* | \s[-–]\s | \s*(?:\.\.+|…)\s* | \s*[()]\s*
      | (?<!\bjust),?\s+(?:and|but|so|because|plus|yet|then|however)\s+(?:also\s|now\s|so\s|then\s|yes\s|currently\s)?(?={_SUBJECT})
      | ,\s+so\s+ | ,\s+(?:and\s+|but\s+|so\s+)?(?={_SUBJECT}|{_ASKING}\b)
      | ,?\s+(?:and|but|so)\s+(?={_ASKING}\s(?:i|you|we|there|it|the|my|this|that|do|does|is|are|can|should|would)\b)
      | ,?\s+(?=(?:because|although|though|which|who|whereas|while|since|especially|except|even|given|considering|including)\s)""",
    re.IGNORECASE | re.VERBOSE,
)
_SHARED = re.compile(rf",?\s+(?:and|but)\s+(?={_VERBS})", re.IGNORECASE)
"""Where a second verb shares the subject of the first."""
_OWN_SUBJECT = re.compile(r"(?:[\w']+,?\s){0,3}?(?:i|i'm|i've|im)\b", re.IGNORECASE)
_WIDE_BOUNDARY = re.compile(
    r"[，,；;。！!、](?=\s?(?:我|咱|以后|今后|请|从|不过|但|而且|所以|因为|你|他|她|现在|目前|平时|也|最|并|同时|还|住|今年|来自|叫|在|是|有|喜欢|对|的))|[，,；;。！!~～—…]+|\s-\s"
)
_WIDE_SUBJECT = re.compile(
    r"(?:不过|但是|但|而且|所以|因为|现在|目前|平时|其实|另外|还有|同时|也|因此|并且|最近|今天|昨天|你好|您好|大家好|嗯|哦|对了)*(?:(?P<own>我(?!的|们|家|妈|爸|妹|弟|姐|哥|朋友|同事|老婆|老公|妻子|丈夫|儿子|女儿|孩子))|[\u3400-\u9fff]{0,6}?(?:我的|我们|他|她|它|你|您|这|那|谁|大家|人们|我(?:家|妈|爸|妹|弟|姐|哥|朋友|同事|老婆|老公|妻子|丈夫|儿子|女儿|孩子)))"
)
_WIDE_NAMED = re.compile(r"(?:名字|大名|小名|品种|名)?叫|(?:名字|大名|小名|品种)")
"""Of whom the clause before spoke."""
_WIDE = re.compile(r"[\u3400-\u9fff]")
_TAG_QUESTION = re.compile(
    r"(?:,\s*|\s)(?:right|correct|no|yes|huh|eh|ok|okay|yeah|you\sknow|or\snot|or\sno|true|(?:am|are|is|was|were|do|does|did|have|has|can|could|would|will|should|ain)(?:n't|'t)?\s(?:not\s)?(?:i|it|you|we|that|this|they|he|she))\s*\?+\W*$",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:please\s)?(?:don't|do\snot)\s(?!you\b|we\b|i\b|they\b)|(?:can't|cannot)\s(?:stand|eat|drink)\b", re.IGNORECASE
)
_FILLER = re.compile(
    r",?\s(?:if\s(?:that|it|this)\s(?:matters|helps|is\srelevant|makes\s(?:a|any)\sdifference)|if\syou(?:'re|\sare|\swere)?\s(?:wondering|curious|must\sknow|need\sto\sknow)|if\s(?:at\sall\s)?(?:possible|available)|if\sthere\sare\sany(?:\sleft)?|if\syou\scan|if\sthat(?:'s|\sis)\s(?:ok|okay|possible)"
    r"|in\scase\s(?:you(?:'re|\sare|\swere)?\swondering|(?:it|that)\s(?:matters|helps|is\srelevant)|you\sneed\sit)|just\sin\scase)(?=[\s,.!;]|$)",
    re.IGNORECASE,
)
_OPENS_QUESTION = re.compile(
    rf"^(?:and\s|but\s|so\s|or\s|also\s|then\s|well,?\s|ok(?:ay)?,?\s|hey,?\s|hi,?\s)*{_ASKING}\b", re.IGNORECASE
)
_DENYING_QUESTION_WIDE = re.compile(
    r"不是[^，,。！!？?]{1,60}(?:[，,]\s?而?是[^，,。！!？?]{1,60})?(?:吗|对吧|是吧)\W*$"
)
"""不是…吗: what it seems to deny is what it asks for."""
_ENDS_ASKING = re.compile(r"[?？]\W{0,6}$|吗[。！!~～]?$")


@dataclass(frozen=True, slots=True)
class Clause:
    """Part of a sentence."""

    text: str
    at: int
    """Where it stands in the sentence."""
    is_shared: bool = False
    """Its subject is that of the clause before."""


def stated_part(sentence: str) -> str:
    """``sentence`` without the question that it ends with; empty where all of it asks."""
    if _DENYING_QUESTION_WIDE.search(sentence):
        return ""
    if not _ENDS_ASKING.search(sentence):
        return "" if _OPENS_QUESTION.match(sentence) and not _is_order(sentence) else sentence
    if _TAG_QUESTION.search(sentence):
        return ""
    starts = [clause.at for clause in _split(sentence) if _OPENS_QUESTION.match(clause.text)]
    if _WIDE.search(sentence):
        starts = [clause.at for clause in _split_wide(sentence)[-1:]]
    return sentence[: starts[0]].rstrip(" ,;—-，；") if starts else ""


def without_filler(sentence: str) -> str:
    """``sentence`` with spaces where it only asks whether it matters: "if that helps" is no condition."""
    return _FILLER.sub(lambda found: " " * len(found.group()), sentence)


def clauses_of(sentence: str, *, is_wide: bool | None = None) -> Iterator[Clause]:
    """Clauses in order, none empty. ``is_wide``: whether as Chinese; None: by its characters."""
    if bool(_WIDE.search(sentence)) if is_wide is None else is_wide:
        yield from _wide_clauses(sentence)
        return
    for part in _split(sentence):
        at = 0
        for found in _SHARED.finditer(part.text) if _OWN_SUBJECT.match(part.text) else ():
            before = part.text[at : found.start()].lower().split()
            if part.text[found.end() :].split(maxsplit=1)[0].lower() in before:
                continue  # "I love the peace and love theme": a noun
            yield Clause(part.text[at : found.start()], part.at + at, at > 0)
            at = found.end()
        yield Clause(part.text[at:], part.at + at, at > 0)


def _wide_clauses(sentence: str) -> Iterator[Clause]:
    """Chinese names its subject once: clauses after one that begins with it share it."""
    is_own = False
    for part in _split_wide(sentence):
        has_subject = _WIDE_SUBJECT.match(part.text.strip())
        if has_subject:
            is_own = has_subject["own"] is not None
        yield Clause(part.text, part.at, is_own and not has_subject and not _WIDE_NAMED.match(part.text.strip()))


def _is_order(sentence: str) -> bool:
    """What a question may open with opens an order as well, or a statement without its subject."""
    return bool(_ORDER.match(sentence))


def _split(sentence: str) -> list[Clause]:
    return _cut(sentence, _BOUNDARY)


def _split_wide(sentence: str) -> list[Clause]:
    return _cut(sentence, _WIDE_BOUNDARY)


def _cut(sentence: str, boundary: re.Pattern[str]) -> list[Clause]:
    clauses, at = [], 0
    for found in boundary.finditer(sentence):
        if sentence[at : found.start()].strip():
            clauses.append(Clause(sentence[at : found.start()], at))
        at = found.end()
    if sentence[at:].strip():
        clauses.append(Clause(sentence[at:], at))
    return clauses
