"""What a stated value is a value *of*: ``my email is A`` gives (email, A). Newest wins needs this to compare.

Only statements about the speaker or about a named single thing get a label; a wrong label would hide a fact.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from prefold.compaction.reading.values import Value, ValueKind, find_values

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
    rf"(?P<label>{_CJK_LABELS})(?:现在|应该|已经)?(?:是|为|改成|改为|换成|变成|改到|(?:提|降|调|增加|减|推迟|提前|更新)(?:到|为)|：|:)\s?(?P<value>[^，。；！？,;!?]{{1,40}})"
)
_NAMED_CJK = re.compile(r"我叫(?P<value>[^，。；！？,;!?]{1,12})")
_THING = re.compile(
    r"""\bthe\s(?P<label>[a-z][\w-]{1,20}(?:\s[a-z][\w-]{1,20}){0,2}?)\s
      (?:is|was|will\sbe|(?:has\s|was\s)?(?:been\s)?(?:moved|changed|postponed|rescheduled|updated|raised|lowered|pushed)\s(?:back\s)?to|starts|begins|ends|closes|costs|leaves|departs|arrives|takes\splace)\s
      (?:now\s|actually\s)?(?:on|at|in|by|for|from)?\s?(?P<value>[^,;!?，。；]{1,60})""",
    re.IGNORECASE | re.VERBOSE,
)
_OLD_BEFORE = re.compile(
    r"(?:(?:\bnot|n't)(?:\s(?:the|on|at|in|to|a|an))?|\binstead\sof|\brather\sthan|\bno\slonger|不是|原来是|之前是|\bnicht|\bstatt|\bau\slieu\sd[eu]|\bpas|\ben\s(?:vez|lugar)\sde|\bem\svez\sde|\bвместо)"
    r"(?:\s(?:el|le|la|der|den|dem|am|o|dia))?\s?$",
    re.IGNORECASE,
)
_CHANGES = re.compile(r"\b(?:chang|mov|switch|reschedul|updat|correct)\w*\b|改|换|変更", re.IGNORECASE)
_FROM = re.compile(r"(?:\bfrom(?:\sthe)?|从|由)\s?$", re.IGNORECASE)
_OLD_AFTER = re.compile(r"^\s?(?:ではなく|じゃなくて|を?から|改成|改为|换成)")
_BARE = re.compile(
    r"""^(?:no|nope|sorry|wait|oops|actually|correction|hold\son)\b | \bi\smeant\b | \bmis(?:spell?ed|spelt|typed|spoke|wrote|remembered|read|heard)\b | \b(?:it|that)\s(?:should|must)\sbe\b | (?:^|[,;]\s|\bplease\s)make\s(?:it|that)\b
      | \bchange\s(?:it|that)\b | \binstead\b | \bfrom\snow\son\b | \bscratch\sthat\b | \b(?:right|correct|new|current)\s\w+\sis\b | \b(?:is|was)\s(?:wrong|incorrect|outdated|no\slonger) | \breplace[sd]?\b | \bmistaken?\b
      | 说错|弄错|搞错|写错|打错|记错|码错|口误|更正|应该是|改成|改为|换成|我(?:是|的意思是)说|不对 | 訂正|間違え | \bquise\sdecir\b | \bje\svoulais\sdire\b | \bich\smeinte\b | \b(?:quis|queria)\sdizer\b | \bв\sвиду\b
      | ^(?:nein|non|não|нет|perdón|pardon|desculpe?)[,.]\s""",
    re.IGNORECASE | re.VERBOSE,
)
_NEWS = re.compile(
    r"\b(?:actually|now|chang\w+|moved|instead|new|no\slonger|updated?|since)\b|现在|改|换|已经|更新|新的|変更|jetzt|maintenant|ahora|agora|теперь",
    re.IGNORECASE,
)
_NAME = r"(?P<old>[^\W\d_a-zà-ÿ][\w'’-]*(?:\s[^\W\d_a-zà-ÿ][\w'’-]+){0,2})"
_DENIED = re.compile(
    rf"""(?:\b[Nn]ot|n't|\b[Ii]nstead\sof|\b[Rr]ather\sthan|\b[Nn]icht|\b[Ss]tatt|\b[Pp]as|\bau\slieu\sd[eu]|\b[Nn]o|\b[Nn]ão|\ben\s(?:vez|lugar)\sde|\bem\svez\sde|\b[Нн]е|\b[Вв]место)
       \s(?:in\s|to\s|from\s|at\s|the\s|nach\s|in\s|aus\s|à\s|de\s|a\s|en\s|para\s|em\s|в\s|из\s)?{_NAME}
      | 不是(?P<zh>[^，。；,;!！?？\s]{{1,10}}?)(?:[，,]|而|，?是) | [把将](?P<zh2>[^，。；,;]{{1,10}}?)(?:改成|改为|换成) | (?P<ja>[^、。，\s]{{1,10}}?)(?:ではなく|じゃなくて)""",
    re.VERBOSE,
)
_PROPER = re.compile(r"[^\W\d_a-zà-ÿ][\w'’-]+(?:\s[^\W\d_a-zà-ÿ][\w'’-]+){0,2}")
_COUNTED = re.compile(
    r"(?<![\w.,$€£-])(?P<number>\d[\d,]{0,8})\s(?!(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))(?P<noun>[^\W\d_]{3,20})\b"
)
_ALIKE = 0.75
_LEAST_NAME = 4
_ANNOUNCES = re.compile(
    r"""\b(?:sorry|oops|whoops|wrong|mistake|mistaken|incorrect|correction|misspell?ed|mistyped|misspoke|typo|scratch\sthat)\b | ^(?:no|nope|wait|actually)[,.!]?$ | 说错|弄错|搞错|写错|打错|记错|口误|更正|不对|错了 | 訂正|間違え
      | \b(?:falsch|geirrt|vertan|trompée?|erreur|equivoqu\w+|enganei|errei)\b | \bошиб""",
    re.IGNORECASE | re.VERBOSE,
)
_MOST_ANNOUNCING = 60
_ADDS = re.compile(
    r"\b(?:also|another|plus|additional|as\swell|too|auch|aussi|también|também|тоже|также)\b|还有|另外|再加|也要",
    re.IGNORECASE,
)
_NO_NAMES = frozenset("I I'm I've I'd The A An It That This My We You He She They".split())
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
    loose: bool = False
    """A thing like any other (``the recital``): only an open correction gives it another value."""


def stated_values(sentence: str) -> Iterator[Stated]:
    """Labelled values that ``sentence`` states, in order."""
    for pattern in (_STATED, _CHANGED, _STATED_CJK):
        for found in pattern.finditer(sentence):
            if label := _normal(found["label"] or found.groupdict().get("single") or ""):
                yield Stated(label, found["value"].strip().rstrip("."))
    for found in _THING.finditer(sentence):
        if (label := _normal(found["label"])) and find_values(found["value"]):
            yield Stated(label, found["value"].strip().rstrip("."), loose=True)
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
    return strict[0] if len(strict) == 1 and opens_correction(sentence) else None


def denied_words(sentence: str) -> list[str]:
    """Names that a sentence takes back, where they are no exact values: ``not Bern``, ``不是成都，是重庆``."""
    found = (next(filter(None, match.groupdict().values()), "") for match in _DENIED.finditer(sentence))
    return [word for word in found if len(word) > 1 and word not in _NO_NAMES]


def respelled(sentence: str, before: str) -> str:
    """A name in ``before`` that ``sentence`` spells a little otherwise, or empty."""
    for name in _names(sentence):
        for other in _names(before):
            if name.lower() != other.lower() and SequenceMatcher(None, name.lower(), other.lower()).ratio() >= _ALIKE:
                return other
    return ""


def _names(sentence: str) -> list[str]:
    """Names in a sentence: its first word counts as one only with a second."""
    found = ((match.start(), match.group()) for match in _PROPER.finditer(sentence))
    return [name for start, name in found if len(name) >= _LEAST_NAME and (start or " " in name)]


def counted(sentence: str) -> dict[str, str]:
    """Noun -> number of what is counted in plain words: ``14 chairs``."""
    return {found["noun"].lower().rstrip("s"): found["number"] for found in _COUNTED.finditer(sentence)}


def opens_correction(sentence: str) -> bool:
    """Whether the wording takes something back, whatever else it says."""
    return bool(_BARE.search(sentence)) and not _ADDS.search(sentence)


def announces_correction(sentence: str) -> bool:
    """Whether it only says that something was wrong; what is right comes next."""
    return len(sentence) <= _MOST_ANNOUNCING and bool(_ANNOUNCES.search(sentence))


def adds(sentence: str) -> bool:
    """Whether it tells of one more."""
    return bool(_ADDS.search(sentence))


def tells_news(sentence: str) -> bool:
    """Whether the wording says that something is no longer as it was."""
    return bool(_NEWS.search(sentence))


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
