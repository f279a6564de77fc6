"""What a stated value is a value *of*: ``my email is A`` gives (email, A). Newest wins needs this to compare.

Only statements about the speaker or about a named single thing get a label; a wrong label would hide a fact.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prefold.compaction.values import Value, ValueKind

_SKIPPED = frozenset(
    "thing problem question issue point concern understanding guess idea code first next last plan goal fear friend best "
    "only worry opinion view reason answer favorite favourite advice hope dream feeling experience setup app project "
    "one other bad fault turn".split()
)
_QUALIFIERS = frozenset(
    "new old current correct updated actual right real own full exact main primary total latest final".split()
)
_SINGLE = r"(?:deadline|budget|date|time|address|e-?mail|phone|number|price|limit|port|version|meeting|flight|appointment|room|venue|location|name|due\sdate|launch)"
_STATED = re.compile(
    rf"""\b(?:(?:my|our)\s(?P<label>[a-z][\w-]{{1,20}}(?:\s[a-z][\w-]{{1,20}}){{0,2}}?)|the\s(?P<single>(?:[a-z][\w-]{{1,20}}\s)?{_SINGLE}))
      (?:\s(?:is|are|was|will\sbe|would\sbe|has\schanged\sto|changed\sto|should\sbe|moved\sto)\b\s?(?:now|actually|in\sfact|really|about|around|only)?\s?|\s?[:=]\s?)
      (?P<value>[^,;!?，。；]{{1,60}})""",
    re.IGNORECASE | re.VERBOSE,
)
_CHANGED = re.compile(
    r"\b(?:change|update|set|move|raise|lower|increase|reduce|switch|correct)\s(?:my|our|the)\s(?P<label>[a-z][\w-]{1,20}(?:\s[a-z][\w-]{1,20}){0,2}?)\s(?:from\s[^,;]{1,40}\s)?to\s(?P<value>[^,;!?]{1,60})",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:i\sam|i'm|i’m)\scalled\s(?P<value>[^,.;!?]{1,40})|\bcall\sme\s(?P<other>[A-Z][^,.;!?]{1,30})"
)
_CJK_LABELS = "邮箱|邮件|电话|手机号?|号码|地址|预算|生日|名字|姓名|订单号?|航班|日期|时间|房间|座位|公司|城市|年龄|职业|账号|出发日期|目的地|截止日期"
_STATED_CJK = re.compile(
    rf"(?P<label>{_CJK_LABELS})(?:现在|应该|已经)?(?:是|为|改成|改为|换成|变成|改到|：|:)\s?(?P<value>[^，。；！？,;!?]{{1,40}})"
)
_NAMED_CJK = re.compile(r"我叫(?P<value>[^，。；！？,;!?]{1,12})")
_OLD_BEFORE = re.compile(
    r"(?:\bnot(?:\s(?:the|on|at|in|to|a|an))?|\binstead\sof|\brather\sthan|\bno\slonger|不是|原来是|之前是)\s?$",
    re.IGNORECASE,
)
_CHANGES = re.compile(r"\b(?:chang|mov|switch|reschedul|updat|correct)\w*\b|改|换|変更", re.IGNORECASE)
_FROM = re.compile(r"(?:\bfrom(?:\sthe)?|从|由)\s?$", re.IGNORECASE)
_OLD_AFTER = re.compile(r"^\s?(?:ではなく|じゃなくて|を?から|改成|改为|换成)")
_BARE = re.compile(
    r"""^(?:no|nope|sorry|wait|oops|actually|correction|hold\son|hmm)\b | \bi\smeant\b | \b(?:it|that)\s(?:should|must)\sbe\b | \bmake\s(?:it|that)\b
      | \bchange\s(?:it|that)\b | 说错|弄错|搞错|写错|更正|应该是|改成|改为 | 訂正|間違え""",
    re.IGNORECASE | re.VERBOSE,
)
_ADDS = re.compile(r"\b(?:also|another|plus|additional|as\swell|too)\b|还有|另外|再加", re.IGNORECASE)
_STRICT = frozenset(
    {
        ValueKind.EMAIL,
        ValueKind.PHONE,
        ValueKind.ID,
        ValueKind.DATE,
        ValueKind.TIME,
        ValueKind.AMOUNT,
        ValueKind.QUANTITY,
        ValueKind.TITLE,
    }
)


@dataclass(frozen=True, slots=True)
class Stated:
    """A labelled value in a sentence. One label holds one value at a time."""

    label: str
    value: str


def stated_values(sentence: str) -> Iterator[Stated]:
    """Labelled values that ``sentence`` states, in order."""
    for pattern in (_STATED, _CHANGED, _STATED_CJK):
        for found in pattern.finditer(sentence):
            if label := _normal(found["label"] or found.groupdict().get("single") or ""):
                yield Stated(label, found["value"].strip().rstrip("."))
    for found in (*_NAMED.finditer(sentence), *_NAMED_CJK.finditer(sentence)):
        yield Stated("name", (found["value"] or found["other"]).strip())


def corrected_pairs(sentence: str, values: tuple[Value, ...]) -> list[tuple[Value, Value]]:
    """Pairs (old, new) of one kind that a correction names together: ``the 14th, not the 12th``."""
    old = [value for value in values if _is_old(sentence, value)]
    fresh = [value for value in values if value not in old]
    return [
        (gone, min(same, key=lambda one: abs(one.start - gone.start)))
        for gone in old
        if (same := [one for one in fresh if one.kind == gone.kind and one.key != gone.key])
    ]


def bare_correction(sentence: str, values: tuple[Value, ...]) -> Value | None:
    """The value of a correction that does not say what it corrects (``sorry, make it the 14th``), or None."""
    strict = [value for value in values if value.kind in _STRICT]
    if len(strict) != 1 or not _BARE.search(sentence) or _ADDS.search(sentence):
        return None
    return strict[0]


def unit_of(value: Value) -> str:
    """What tells two quantities apart that cannot replace each other: ``days`` of ``10 days``."""
    if value.kind is not ValueKind.QUANTITY:
        return ""
    return re.sub(r"[\d\s.,~–+-]", "", value.text).lower().rstrip("s")


def _is_old(sentence: str, value: Value) -> bool:
    before = sentence[max(0, value.start - 24) : value.start]
    if _CHANGES.search(sentence) and _FROM.search(before):
        return True
    return bool(_OLD_BEFORE.search(before) or _OLD_AFTER.match(sentence[value.end : value.end + 6]))


def _normal(label: str) -> str:
    words = [word for word in label.lower().split() if word not in _QUALIFIERS]
    if not words or words[-1] in _SKIPPED or words[0] in _SKIPPED:
        return ""
    return " ".join(words)
