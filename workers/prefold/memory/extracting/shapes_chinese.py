"""What a rule's object may look like in Chinese, where nothing but its shape tells where a thing ends."""

import re

from prefold.memory.extracting.shapes import LANGUAGES, phone

__all__ = [
    "wide_allergy",
    "wide_amount",
    "wide_interest",
    "wide_language",
    "wide_measure",
    "wide_name",
    "wide_number",
    "wide_phone",
    "wide_phrase",
    "wide_place",
    "wide_plan",
    "wide_things",
]

_MOST_WIDE = 16
_WIDE_STOPS = re.compile(
    r"[，,。.！!？?；;：:（）()“”\"~～…\s—]|因为|所以|但是|不过|而且|的时候|的话|然后|并且|以及我|了解一下|吧$|啊$|呀$|哦$|啦$|呢$|哈$|嘛$|了$|的$|噢$|哟$"
)
_WIDE_NOTHING = re.compile(
    r"^(?:你|您|他|她|它|这|那|什么|啥|怎|谁|哪|和你|跟你|同你|一下|一起|一些东西|东西|事情|一切|大家|自己|上了|上她|上他|到|得|过|看到你|听你|听到|死|说|着|了|的|是|不)|^(?:一下|很多|很|都|人)$"
)


def wide_phrase(rest: str) -> tuple[str, ...]:
    """A thing in at most sixteen characters of Chinese."""
    text = rest.strip()
    found = _WIDE_STOPS.search(text)
    text = text[: found.start()] if found else text
    text = re.sub(r"(?:了|的|呢|啊|吧|呀|哦|啦)+$", "", text).strip("《》「」 ")
    return (text,) if 0 < len(text) <= _MOST_WIDE and not _WIDE_NOTHING.match(text) else ()


def wide_things(rest: str) -> tuple[str, ...]:
    """One thing or each of a list."""
    whole = re.split(r"[，,。！!？?；;]", rest.strip())[0]
    parts = [part for part in re.split(r"、|和|以及|还有|与|跟", whole) if part.strip()]
    found = [wide_phrase(part) for part in parts]
    if len(parts) > 1 and all(one and len(one[0]) <= 8 for one in found):
        return tuple(dict.fromkeys(one[0] for one in found))
    return wide_phrase(whole)


_WIDE_NAME = re.compile(
    r"[一-龥]{1,6}(?=$|[，,。.！!、；;\s]|就行|就好|吧|了|今年|来自|是)|[A-Za-z][A-Za-z .'-]{0,30}[A-Za-z]"
)
_WIDE_PLACE = re.compile(
    r"(?:[一-龥]{2,14}?|[A-Za-z][\w .'&-]{1,30}?)(?=工作|上班|任职|就职|做|当|担任|的?学生|的?研究生|的?本科生|的?博士生|教书|生活|居住|定居|上学|读书|念书|学习|读研|读博|就读|读大学|人(?:$|[，,。！!])|了|的|附近|这边|那边|已经|离职|辞职|搬|$|[，,。.！!、；;\s])"
)


def wide_name(rest: str) -> tuple[str, ...]:
    """A name, up to what hangs on behind it."""
    found = _WIDE_NAME.match(rest.strip())
    name = re.sub(r"(?:就行|就好|吧|了|就可以|即可)+$", "", found.group()) if found else ""
    return (name,) if name and not _WIDE_NOTHING.match(name) else ()


def wide_place(rest: str) -> tuple[str, ...]:
    """A place or an organisation, up to the verb after it."""
    found = _WIDE_PLACE.match(rest.strip())
    name = found.group() if found else ""
    return (
        (name,)
        if name
        and not re.match(
            r"家|这|那|哪|你|他|她|外面|里面|附近|一个|学校$|公司$|一家|.*(?:里|酒店|宾馆|宿舍|房子|公寓|旅馆)$", name
        )
        else ()
    )


def wide_measure(rest: str) -> tuple[str, ...]:
    """A number with its unit."""
    found = re.match(
        r"(?:\d[\d.]*|[一二]米[一二三四五六七八九]{1,2})\s?(?:厘米|公分|米\d{0,2}|cm|公斤|千克|斤|kg)?", rest.strip()
    )
    return (found.group().strip(),) if found else ()


def wide_number(rest: str) -> tuple[str, ...]:
    """An age, in figures of either kind."""
    found = re.match(r"\d{1,3}|[一二三四五六七八九十]{1,3}", rest.strip())
    return (found.group(),) if found else ()


def wide_phone(rest: str) -> tuple[str, ...]:
    """A phone number."""
    return phone(rest)


def wide_amount(rest: str) -> tuple[str, ...]:
    """Money, with what it is for a day or in all."""
    found = re.match(
        r"[¥￥$]?\s?[\d,.]+\s?(?:万|千|百|亿|k|K)?(?:元|块钱?|人民币|美元|美金|欧元|日元|港币)?(?:左右|以内|以下)?|[一二两三四五六七八九十百千万几]+(?:元|块钱?|美元|美金|欧元|日元)?(?:左右|以内|以下)?",
        rest.strip(),
    )
    return (found.group().strip(),) if found and len(found.group().strip()) > 1 else ()


def wide_language(rest: str) -> tuple[str, ...]:
    """The name of a language."""
    found = re.match(r"[一-龥]{2,4}?(?=回答|回复|和我|跟我|交流|写|答复)", rest.strip())
    return (found.group(),) if found and found.group() in LANGUAGES else ()


def wide_allergy(rest: str) -> tuple[str, ...]:
    """What stands before 过敏; each of a list."""
    found = re.match(
        r"(?P<named>[^，,。！!]{1,16}?)(?:都|也|会|很|严重|非常|特别|有点|有|不再|不|已经)*过敏", rest.strip()
    )
    return (
        tuple(one for part in re.split(r"、|和|以及|跟|与", found["named"]) for one in wide_phrase(part))
        if found
        else ()
    )


def wide_interest(rest: str) -> tuple[str, ...]:
    """What stands before 感兴趣; each of a list."""
    found = re.match(
        r"(?P<named>[^，,。！!]{1,12}?)(?:都|也|一直|很|非常|特别|比较|十分|挺|更)*(?:感兴趣|有兴趣|着迷)", rest.strip()
    )
    return (
        tuple(one for part in re.split(r"、|和|以及|跟|与", found["named"]) for one in wide_phrase(part))
        if found
        else ()
    )


def wide_plan(rest: str) -> tuple[str, ...]:
    """What is intended, in at most thirty characters."""
    text = re.split(r"[，,。！!？?；;]", rest.strip())[0]
    text = re.sub(r"(?:了|的|呢|啊|吧|呀|哦|啦)+$", "", text).strip()
    return (text,) if 2 <= len(text) <= 30 else ()
