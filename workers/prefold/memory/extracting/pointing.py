"""Clauses that point back with a pronoun, said out: "my email has changed, it's X now" is "my email is X now"."""

import re
from collections.abc import Sequence
from dataclasses import replace

from prefold.memory.extracting.clauses import Clause
from prefold.memory.extracting.rule import without_lead
from prefold.memory.extracting.vocabulary import KIN, KNOWN_PEOPLE, PETS

__all__ = ["said_out", "said_out_wide"]

_CONTACT = r"(?:new |work |personal |private )?(?:e-?mail(?: address)?|phone(?: number)?|mobile(?: number)?|cell(?: number)?|number|address|last name|surname|budget|deadline|time ?zone)"
_CHANGED = re.compile(
    rf"\b(?:my|our) (?P<what>{_CONTACT})(?: has| have|'s| is)?(?: just| recently| now)? (?:changed|moved|been (?:changed|updated)|different|outdated)\b"
    rf"|\bi(?:'ve| have)?(?: just| recently)? (?:got|have|changed|switched|updated|set up) (?:to )?(?:a new|my) (?P<new>{_CONTACT})\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    rf"\bmy (?P<what>{_CONTACT}|(?:first |full )?name|birthday|(?:{KIN})'s name)(?:(?:'s| is) (?:not|no longer)| isn't) ",
    re.IGNORECASE,
)
_IT = re.compile(
    r"(?:and |so )?(?:it's|it is|that's|(?:the )?new (?:one|e-?mail|number|address)(?:'s| is|:)) (?:now )?",
    re.IGNORECASE,
)
_OWN_KIN = re.compile(
    rf"(?:my|our) (?:[\w-]+ ){{0,2}}?(?P<own>{KIN}|{PETS})\b|(?:i|we)(?:'ve| have)?(?: just| also| recently)? (?:have|got|adopted|rescued|own|bought) an? (?:[\w-]+ ){{0,3}}?(?P<had>{KIN}|{PETS})\b",
    re.IGNORECASE,
)
_ANYBODY = re.compile(
    rf"\b(?:{KIN}|{PETS}|{KNOWN_PEOPLE}|he|she|his|her|person|man|woman|guy|girl|boy)\b", re.IGNORECASE
)
_NAMED = re.compile(
    r"(?:and )?(?:(?:his|her|its) name(?:'s| is) |(?:he|she|it)(?:'s| is) (?:called|named) )", re.IGNORECASE
)
_LEFT_HOME = re.compile(
    r"\b(?:don't|do not|no longer) live (?:in|at)\b|\bmoved (?:away|out) (?:of|from)\b", re.IGNORECASE
)
_LEFT_WORK = re.compile(
    r"\b(?:don't|do not|no longer) work (?:at|for)\b|\bi(?:'ve| have)? (?:quit|left) (?:my job|work)\b", re.IGNORECASE
)
_IN = re.compile(r"(?:and |but )?(?:i'm|i am|im)(?: now| currently)? in ", re.IGNORECASE)
_AT = re.compile(r"(?:and |but )?(?:i'm|i am|im)(?: now| currently)? (?:at|with) ", re.IGNORECASE)

_CHANGED_WIDE = re.compile(
    r"我的?(?P<what>手机号?码?|电话号?码?|邮箱|微信号?|地址)(?:已经|刚刚?|最近)*(?:换|改|变|更新)(?:了|过)"
)
_IT_WIDE = re.compile(r"(?:现在|新的?|新号码?|新邮箱|新地址)+(?:的)?(?:是|为|：|:)")
_WRONG_WIDE = re.compile(
    r"我的?(?P<what>手机号?码?|电话号?码?|邮箱|微信号?)(?:地址)?(?:现在|已经|早就|早)*(?:不是|不再是)"
)
_RIGHT_WIDE = re.compile(r"(?:而|现在|新的?)*(?:是|改成了?|换成了?)(?!不|什么|谁|哪)")
"""After a clause that said what is wrong."""
_KIN_WIDE = re.compile(
    r"(?:我(?:们)?(?:家)?里?(?:刚|还|也|现在)*(?:养了?|有|领养了?)[^，,。]{0,8}?|我(?:们)?(?:家)?的?)(?P<kind>猫|狗|金毛|泰迪|柯基|哈士奇|布偶|英短|拉布拉多|女儿|儿子|妹妹|姐姐|弟弟|哥哥|女朋友|男朋友)(?:$|[^的]{0,8}$)"
)
_BREEDS_WIDE = ("金毛", "泰迪", "柯基", "哈士奇", "布偶", "英短", "拉布拉多")
_NAMED_WIDE = re.compile(r"(?:它|她|他)?的?(?:名字|大名)?(?:叫做?|是(?<=名字是))")


def said_out(clauses: Sequence[Clause], before: str) -> list[Clause]:
    """``clauses``, those that name something by a pronoun with its name. ``before``: the sentence before them."""
    found: list[Clause] = []
    for clause in clauses:
        said = clause.text[without_lead(clause.text) :]
        found.append(replace(clause, text=_whole(said, before) or clause.text))
        before = clause.text
    return found


def _whole(said: str, before: str) -> str:
    if (it := _IT.match(said)) and (what := _what_is_new(before)):
        return f"my {'phone number' if what == 'number' else what} is {said[it.end() :]}"
    if (named := _NAMED.match(said)) and (kind := _only_kind(before)):
        return f"my {kind} is called {said[named.end() :]}"
    if (place := _IN.match(said)) and _LEFT_HOME.search(before):
        return f"I live in {said[place.end() :]}"
    if (place := _AT.match(said)) and _LEFT_WORK.search(before):
        return f"I work at {said[place.end() :]}"
    return ""


def _what_is_new(before: str) -> str:
    """What of theirs the user has just said to have changed or to be wrong."""
    if changed := _CHANGED.search(before):
        return re.sub(r"^new ", "", changed["what"] or changed["new"], flags=re.IGNORECASE).lower()
    wrong = _WRONG.search(before)
    return wrong["what"].lower() if wrong else ""


def _only_kind(before: str) -> str:
    """Whom the clause before is about, if it is somebody of the user's and speaks of nobody else."""
    found = _OWN_KIN.match(before[without_lead(before) :])
    if found is None or len({one.group().lower() for one in _ANYBODY.finditer(before)}) != 1:
        return ""
    kind = (found["own"] or found["had"]).lower()
    return kind if re.fullmatch(KIN, kind) else "pet"


def said_out_wide(clauses: Sequence[Clause], before: str) -> list[Clause]:
    """The same in Chinese."""
    found: list[Clause] = []
    for clause in clauses:
        found.append(replace(clause, text=_whole_wide(clause.text.strip(), before) or clause.text))
        before = clause.text
    return found


def _whole_wide(said: str, before: str) -> str:
    if (it := _IT_WIDE.match(said)) and (changed := _CHANGED_WIDE.search(before)):
        return f"我的{changed['what']}是{said[it.end() :]}"
    if (it := _RIGHT_WIDE.match(said)) and (wrong := _WRONG_WIDE.match(before.strip())):
        return f"我的{wrong['what']}是{said[it.end() :]}"
    if (named := _NAMED_WIDE.match(said)) and (kin := _KIN_WIDE.match(before.strip())):
        kind = kin["kind"] if kin["kind"] not in _BREEDS_WIDE else "宠物"
        return f"我的{kind}叫{said[named.end() :]}"
    return ""
