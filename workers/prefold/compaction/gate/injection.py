"""Whether a sentence tries to steer whoever reads it, and how far it goes. See ``injection_words`` for the wording."""

import re
from enum import IntEnum
from functools import lru_cache

from prefold.compaction.gate.disguises import composed, turned, undisguised
from prefold.compaction.gate.injection_words import DUTY, LASTING, OF_ASSISTANT, OVERRIDE, TASK


class Order(IntEnum):
    """From harmless to hostile."""

    NONE = 0
    TASK = 1
    """An errand: begins with an imperative."""
    DUTY = 2
    """Says what the reader, or the assistant, has to do."""
    LASTING = 3
    """The same for every time to come."""
    OVERRIDE = 4
    """Takes rules off, forges a higher authority, a tag or a role, or asks to be kept or hidden."""


_ROLES = r"(?:system|sys|developer|assistant|user|human|tool|function|admin(?:istrator)?|operator|instructions?|prompt|transcript|summar(?:y|ies)|turn|part|result|call|conversation|context|im_start|im_end|endoftext|eot(?:_id)?|start_header_id|end_header_id|begin_of_text|inst)"
_FORGED = re.compile(
    rf"(?<!\w)[<＜‹〈《⟨]\s{{0,3}}[|/]?\s{{0,3}}[|/]?\s{{0,3}}(?:\w{{1,20}}:)?{_ROLES}(?:[\s_-][^<>]{{0,80}})?[|/]?\s{{0,3}}[>＞›〉》⟩|]"
    r"|\[\s?/?\s?(?:inst|sys|system(?: (?:message|prompt|note|override))?|assistant|developer|admin)\s?\]|<<\s?/?sys\s?>>"
    r"|\"role\"\s?:\s?\"(?:system|assistant|user|tool|developer)\""
    r"|[\[［【(]\W{0,3}p\W{0,2}r\W{0,2}e\W{0,2}f\W{0,2}o\W{0,2}l\W{0,2}d\b"
    r"|^\W{0,8}(?:system|developer|admin(?:istrator)?|operator|root|sysadmin|anthropic|openai|système|sistema|система|sistem|시스템|系统|系統|システム|النظام|सिस्टम)(?: (?:message|prompt|note|override|instruction|update|notice|alert))?\s?(?:\([^)\n]{0,30}\)\s?)?[:：>]",
)
_COMPACT = re.compile(
    r"ignor(?:e|ing)(?:all|any|every|the|your|previous|prior|above|these|those|earlier)|disregard(?:all|any|the|your|previous|prior)|forget(?:all|your|previous|everythingabove)"
    r"|previousinstruction|priorinstruction|systemprompt|systemmessage|fromnowon|rememberforever|rememberthisfor|newinstruction|youarenow|developermode|jailbreak"
    r"|everyrepl|everyanswer|everyresponse|allfuturerepl|allfutureans|alwaysrepl|alwaysanswer|alwayssay|alwaysend|alwaysrespond|neverrefuse|donottelltheuser|donotmention"
    r"|ignoriere(?:alle|die)|absofort|oubliez?(?:toutes|les)|ignorez?(?:toutes|les|toute)|ignora(?:todas|las|tutte|le)|игнорируйвсе|忽略(?:之前|以上|所有)|从现在开始|無視して"
)
_LETTERS = re.compile(r"[\W\d_]+")
_SENSE = re.compile(
    r"\b(?:the|and|is|of|to|in|was|for|with|user|that|der|die|das|und|ist|le|la|les|et|est|el|los|que|es|de|o|e|il|che|è|het|een|en|и|в|не|на|что|ve|bir)\b"
)


@lru_cache(maxsize=20_000)
def order_of(text: str) -> Order:
    """The most that any reading of ``text`` amounts to. Time is linear in its length."""
    found = max((_order(form) for form in undisguised(text)), default=Order.NONE)
    if found < Order.LASTING and len(text) < 2_000 and not _SENSE.search(composed(text)) and _turns_to_order(text):
        return Order.OVERRIDE
    return found


def gives_orders(text: str) -> bool:
    """Whether ``text``, which no person said, is better left out than quoted: it wants to steer an assistant."""
    return order_of(text) >= Order.LASTING or any(OF_ASSISTANT.search(form) for form in undisguised(text))


def _order(form: str) -> Order:
    if OVERRIDE.search(form) or _FORGED.search(form):
        return Order.OVERRIDE
    if LASTING.search(form):
        return Order.LASTING
    if _COMPACT.search(_LETTERS.sub("", form)):
        return Order.OVERRIDE
    if DUTY.search(form):
        return Order.DUTY
    return Order.TASK if TASK.search(form) else Order.NONE


def _turns_to_order(text: str) -> bool:
    return any(_COMPACT.search(_LETTERS.sub("", form)) for form in turned(text))
