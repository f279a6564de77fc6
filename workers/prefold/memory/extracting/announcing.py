"""Sentences after which others speak: what stands below them in the paragraph is nobody's own word."""

import re
from typing import Final

__all__ = ["announces_others"]

_SAYS: Final = (
    r"(?:says|said|tells|told|writes|wrote|texted|e-?mailed|messaged|sent|shared|posted|replied|reports|reported|claims"
    r"|claimed|stated|answered|left)"
)
_POINTS: Final = (
    r"(?:this(?:\s(?:note|message|text|e-?mail|letter|statement|comment|review))?|the\sfollowing|as\sfollows)"
)
_REPORT = re.compile(
    rf"(?!\W*(?:i|we|i've|we've)\s(?:have\s|just\s|already\s|also\s|once\s)*{_SAYS}\b).*\b{_SAYS}\b(?:\s[\w']+){{0,3}}?\s{_POINTS}\W*$",
    re.IGNORECASE,
)
"""It points forward, at what somebody else says: "My brother told me this." """
_PEOPLE: Final = (
    r"(?:patient|client|customer|case|user|guest|visitor|employee|applicant|candidate|witness|tenant|student|pupil|member"
    r"|resident|caller|donor|reviewer|speaker|doctor|nurse|teacher|therapist)(?:'s|s')?"
)
_OCCASIONS: Final = r"(?:clinical|medical|progress|intake|admission|discharge|triage|interview|session|nursing|visit)"
_PAPERS: Final = (
    r"(?:notes?|records?|reports?|files?|charts?|history|summary|profile|statement|testimon(?:y|ial)|transcript|excerpt"
    r"|questionnaire|survey|form|feedback|review|quote|letter|e-?mail|message|card|sheet|persona)"
)
_HEADING = re.compile(
    rf"\W*(?:the\s|an?\s|from\s(?:the\s|an?\s)?|example\s|sample\s)?(?:{_PEOPLE}|{_OCCASIONS})(?:\s(?:{_PEOPLE}|{_OCCASIONS}))?\s{_PAPERS}(?:\s(?:no\.?\s?)?#?\d+)?\W*$",
    re.IGNORECASE,
)
"""What a pasted paper begins with; "my notes" and "a quick note" are one's own."""
_REPORT_WIDE = re.compile(
    r"(?!我(?:想|要|来|先|就|只|再)?(?:说|讲|写|告诉|发)).*(?:说|讲|写|告诉|发来|转述)[^，,。]{0,6}?(?:以下|下面|如下)[^，,。]{0,4}\W*$"
    r"|(?!我(?:就|也|都|曾)?(?:是)?(?:这么|这样)).*(?:这么|这样)(?:说|写|讲|告诉)(?:的|道|我的?)?\W*$"
)
_HEADING_WIDE = re.compile(
    r"\W*(?:患者|病人|客户|用户|顾客|学员|学生|员工|访客|来访者|候选人|门诊|住院|就诊|面试|咨询|护理|客服)(?:的)?(?:记录|笔记|病历|档案|资料|自述|口述|主诉|反馈|评价|简介|留言|来信)\W*$"
)


def announces_others(sentence: str) -> bool:
    """Whether what follows ``sentence`` is told by somebody else, as it says itself."""
    return any(rule.match(sentence) for rule in (_REPORT, _HEADING, _REPORT_WIDE, _HEADING_WIDE))
