"""All rules, by language."""

import re
from typing import Final

from prefold.memory.extracting.rule import Rule
from prefold.memory.extracting.rules_chinese_wants import WANTS_CHINESE
from prefold.memory.extracting.rules_chinese_who import WHO_CHINESE
from prefold.memory.extracting.rules_english_life import LIFE
from prefold.memory.extracting.rules_english_likes import LIKES
from prefold.memory.extracting.rules_english_wants import WANTS
from prefold.memory.extracting.rules_english_who import WHO

__all__ = ["CHINESE", "ENGLISH", "LEAD_CHINESE"]

ENGLISH: Final[tuple[Rule, ...]] = (*WHO, *LIFE, *LIKES, *WANTS)
CHINESE: Final[tuple[Rule, ...]] = (*WHO_CHINESE, *WANTS_CHINESE)
LEAD_CHINESE = re.compile(
    r"(?:\s|[，,。！!~]|你好|您好|大家好|嗨|哈喽|早上好|晚上好|对了|另外|还有|而且|不过|但是|但|所以|因为|因此|其实|首先|然后|顺便说一下|顺便说|说实话|请(?:记住|注意)|记住|记一下|注意|提醒一下|补充一下|更正一下|更正|是的|对(?=[，,])|嗯|哦|啊|好的|谢谢|现在|目前|同时|并且|平时|没错|如你所知|作为一个人|总之|由于)*"
)
"""What may stand before a statement."""
