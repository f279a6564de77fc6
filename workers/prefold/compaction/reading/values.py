"""Exact values in a text: what a summary must carry letter by letter or not at all."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class ValueKind(StrEnum):
    """What a value is."""

    EMAIL = "email"
    URL = "url"
    ERROR = "error"
    PATH = "path"
    DATE = "date"
    TIME = "time"
    AMOUNT = "amount"
    QUANTITY = "quantity"
    VERSION = "version"
    ID = "id"
    PHONE = "phone"
    TITLE = "title"
    CODE = "code"
    NUMBER = "number"


_DATE_FILLERS = re.compile(r"\b(?:the|of|de)\b|(?<=\d)(?:st|nd|rd|th|\.|er|º)(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Value:
    """One exact value and where it stands in its text."""

    kind: ValueKind
    text: str
    start: int
    end: int
    label: str = ""
    """Its key in a tool's output."""

    @property
    def key(self) -> str:
        """Equal for two spellings of one value: case, thousands separators, spaces and the order of a date do not count."""
        if self.kind in (ValueKind.AMOUNT, ValueKind.QUANTITY, ValueKind.NUMBER):
            return re.sub(r"[\s,]", "", self.text.lower())
        if self.kind is ValueKind.PHONE:
            return re.sub(r"\D", "", self.text)
        if self.kind is ValueKind.DATE:
            return " ".join(sorted(_DATE_FILLERS.sub("", self.text.lower()).replace(",", " ").split()))
        return " ".join(self.text.lower().split())


_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_LONG_MONTH = r"(?:January|February|March|April|June|July|August|September|October|November|December)"
_OTHER_MONTH = (
    r"(?:Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember|janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    r"|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
    r"|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря)"
)
_CURRENCY = r"(?:dollars?|euros?|pounds?\ sterling|cents?|bucks|usd|eur|gbp|cad|aud|chf|jpy|cny|rmb|yuan|yen|rupees?|francs?|kron(?:or|er|a|e)|pesos?|reais|zlotys?|złotych|рубл(?:ей|я|ь)|руб)"
_FILE_ENDING = (
    r"(?:py|pyi|js|jsx|ts|tsx|mjs|c|h|cc|cpp|hpp|rs|go|java|kt|rb|php|cs|swift|lua|sh|sql|html?|css|scss|json|jsonl|ya?ml"
    r"|toml|ini|cfg|conf|env|md|rst|txt|csv|tsv|log|xml|pdf|docx?|xlsx?|pptx?|zip|tar|gz|png|jpe?g|gif|svg|lock|pony)"
)
_UNITS = (
    r"(?:%|percent|percentage\ points|ms|milliseconds?|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|nights?|weeks?|months?|years?"
    r"|km|cm|mm|meters?|metres?|miles?|kg|mg|grams?|lbs?|pounds?|oz|ml|litres?|liters?|[KMGT]i?B|kbps|mbps|tokens?|words?|pages?"
    r"|people|persons?|guests?|adults?|children|kids|users?|items?|pieces?|bags?|times|commits?|problems?|columns?|workers?"
    r"|requests?|attempts?|calories|kcal|degrees|°[CF]?|°|px|rpm|mph|km/h|GHz|MHz|V|W)"
)
_HAN = "[一二两三四五六七八九十百千万亿零〇]"
_UNITS_CJK = r"(?:天|周|星期|个月|年|小时|分钟|秒|公里|千米|厘米|米|公斤|千克|斤|克|人|位|岁|次|度|个|张|本|间|晚|日間|泊|人分|歳)"

_VALUE = re.compile(
    rf"""
    (?P<email>[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{2,63}}){{1,4}})
  | (?P<url>(?:https?|ftp|wss?|redis|mongodb|postgres(?:ql)?|mysql|git|ssh)://[^\s<>()\[\]"'`，。；）]{{1,300}})
  | (?P<error>\b[A-Za-z_.]{{0,60}}(?:Error|Exception|Traceback|Fault)\b(?::\s[^\n]{{1,160}})?|\bexit\ (?:code|status)\ \d{{1,3}}\b)
  | (?P<date>\b\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?:[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}})?)?
      |\b\d{{1,2}}[./]\d{{1,2}}[./](?:\d{{4}}|\d{{2}})\b
      |\b{_MONTH}\.?\ \d{{1,2}}(?:st|nd|rd|th)?(?:\s?[-–]\s?\d{{1,2}})?(?:,?\ \d{{4}})?\b
      |\b(?:\d{{1,2}}(?:st|nd|rd|th)?|the\ \d{{1,2}}(?:st|nd|rd|th))(?:\ of)?\ {_MONTH}(?:,?\ \d{{4}})?\b
      |\b{_MONTH}\ \d{{4}}\b
      |\b\d{{1,2}}(?:\.|er|º)?\ (?:de\ )?(?:{_OTHER_MONTH}|{_MONTH})(?:\ (?:de\ )?\d{{4}})?(?!\w)
      |\b(?:(?:early|mid|late|end\ of|(?:first|last|second|third)\ (?:\w{{1,10}}\ ){{1,3}}of)[ -])?{_LONG_MONTH}\b|\b(?:in|of|by|until|before|after|since|during)\ May\b(?!\ \d)
      |\bthe\ \d{{1,2}}(?:st|nd|rd|th)\b
      |(?:\d{{4}}年)?\d{{1,2}}月(?:\d{{1,2}}[日号])?|\d{{4}}年|\d{{1,2}}号(?![楼线码门机])|{_HAN}{{1,2}}月{_HAN}{{1,3}}[日号])
  | (?P<amount>(?:US|CA|AU|NZ|HK|S|R)?[$€£¥￥₹₩]\s?\d[\d,.]{{0,20}}(?:\s?(?:k|m|bn|million|billion|thousand|万|亿)\b)?
      |\b(?:\d{{1,3}}(?:[\u00a0\u202f ]\d{{3}}){{1,4}}|\d[\d,.]{{0,20}})\s?(?:{_CURRENCY}(?!\w)|[€£₽]|kr\b)
      |{_HAN}{{2,14}}(?:元|块|美元|日元|欧元|人民币)
      |\d[\d,.]{{0,20}}\s?(?:万|千|百|亿)?(?:元|块钱|块|美元|日元|円|欧元|人民币))
  | (?P<path>(?<![\w/])(?:~|\.{{1,2}})?/(?:[\w.@+-]{{1,80}}/){{1,20}}[\w.@+-]{{0,80}}
      |(?<![\w/])(?:[\w.@+-]{{1,80}}/){{1,20}}[\w@+-][\w.@+-]{{0,80}}\.{_FILE_ENDING}\b
      |\b[A-Za-z]:\\[\w.\\ -]{{2,120}}
      |(?<![\w.-])[\w-]{{1,60}}(?:\.[\w-]{{1,30}}){{0,3}}\.{_FILE_ENDING}\b)
  | (?P<time>\b\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:\s?[ap]\.?m\b\.?)?|\b\d{{1,2}}\s?[ap]\.?m\b\.?|(?:[上下]午|早上|晚上|中午|凌晨|午[前後])?\d{{1,2}}[点點時](?!间|間)(?:\d{{1,2}}分|半)?|\b\d{{1,2}}\s?Uhr\b|\b\d{{1,2}}h\d{{2}}\b)
  | (?P<version>\bv?\d{{1,4}}\.\d{{1,4}}\.\d{{1,6}}(?:[-.+][0-9A-Za-z]{{1,12}})?\b|\bv\d{{1,4}}(?:\.\d{{1,4}})?\b)
  | (?P<quantity>[-+]?\b\d[\d,]{{0,15}}(?:\.\d{{1,6}})?(?:\s?[-–~]\s?\d[\d,]{{0,15}}(?:\.\d{{1,6}})?)?[\s-]?{_UNITS}(?![\w])
      |\d[\d,]{{0,15}}(?:\.\d{{1,6}})?\s?{_UNITS_CJK})
  | (?P<id>\#\d{{2,12}}\b
      |\b[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}\b
      |\b(?=[A-Za-z0-9_-]{{0,40}}\d)(?=[0-9_-]{{0,40}}[A-Za-z])[A-Za-z0-9]{{1,40}}(?:[_-][A-Za-z0-9]{{1,40}}){{1,6}}\b
      |\b(?=[A-Z0-9]{{0,24}}\d)(?=[0-9]{{0,24}}[A-Z])[A-Z0-9]{{4,24}}\b
      |\b(?=[0-9a-f]{{0,40}}\d)(?=[0-9]{{0,40}}[a-f])[0-9a-f]{{7,64}}\b)
  | (?P<phone>(?<![\w.])\(\d{{2,4}}\)\s?\d{{3,4}}[ -]?\d{{3,4}}\b|(?<![\w.])\+(?=(?:[ .-]?\d){{8}})\d{{1,3}}(?:[ .-]\d{{2,10}}){{1,5}}\b
      |(?<![\w.])\+?\d{{1,4}}[ (-]{{1,2}}\d{{2,4}}[) -]{{1,2}}\d{{3,4}}(?:[ -]\d{{2,4}}){{0,2}}\b|\b1[3-9]\d{{9}}\b)
  | (?P<grouped>(?<![\w.,/-])(?!(?:19|20)\d\d-(?:19|20)\d\d\b)(?=[\d-]{{8}})\d{{2,8}}(?:-\d{{2,8}}){{1,4}}(?![\w-])|(?<![\w.,/-])\d{{6,24}}(?![\w-]|[.,]\d))
  | (?P<title>《[^》\n]{{1,40}}》|「[^」\n]{{1,40}}」|“[^”\n]{{2,60}}”|"(?=[^"\n]{{0,60}}[A-Za-z])[^"\n]{{2,60}}"(?![\w]))
  | (?P<code>`[^`\n]{{2,60}}`|\b[a-z]\w{{1,40}}_\w{{1,40}}\b(?:\(\))?|\b[A-Z][A-Z0-9]{{1,30}}_[A-Z0-9_]{{1,40}}\b
      |\b[A-Z][a-z0-9]{{1,30}}(?:[A-Z][a-z0-9]{{1,30}}){{1,5}}\b|\b[a-z]{{2,30}}(?:[A-Z][a-z0-9]{{1,30}}){{1,5}}\b|\b\w{{2,40}}\(\))
  | (?P<number>(?u:(?<![\w.])\d[\d,]{{2,20}}(?:\.\d{{1,6}})?(?![\w])|(?<![\w.])\d{{1,3}}\.\d{{1,6}}(?![\w.])|(?<![\w.])\d{{1,3}}/\d{{1,3}}(?![\w/])
      |(?<![\w.,-])\d{{1,2}}(?![\w-]|[.,]\w)))
    """,
    re.VERBOSE | re.ASCII,
)
"""ASCII: a value ends where ideographs begin."""
_HINT = re.compile(
    r"[\d@/\\_`\"“《「#]|Error|Exception|Traceback|[a-z][A-Z]|[A-Z][a-z]{2,}[A-Z]|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|\(\)|\.[a-z]|[百千万十]|[一二三四五六七八九]月"
)
_GROUPED = ValueKind.ID
"""Digits alone: so many of them name something."""
_ENDS_SENTENCE = re.compile(r"\d\s?[ap]m\.$")
_TRAILING = ".,;:!?'\"）)"


def find_values(text: str) -> tuple[Value, ...]:
    """Exact values in ``text``, in order, none inside another. Linear for lines of a bounded length."""
    return tuple(_found(text)) if _HINT.search(text) else ()


def _found(text: str) -> Iterator[Value]:
    for found in _VALUE.finditer(text):
        kind = _GROUPED if found.lastgroup == "grouped" else ValueKind(str(found.lastgroup))
        value = found.group()
        if kind not in (ValueKind.TIME, ValueKind.TITLE, ValueKind.CODE) or _ENDS_SENTENCE.search(value):
            value = value.rstrip(_TRAILING)
        if value.strip():
            yield Value(kind, value, found.start(), found.start() + len(value))
