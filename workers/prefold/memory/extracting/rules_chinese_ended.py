"""How people say in Chinese that something is over. Patterns begin where a clause begins."""

import re

from prefold.memory.extracting.rule import Rule, wide
from prefold.memory.extracting.shapes import email
from prefold.memory.extracting.shapes_chinese import wide_allergy, wide_phone, wide_place, wide_things

__all__ = ["ENDED_CHINESE", "SAYS_NO_LONGER_CHINESE"]

ENDED_CHINESE: tuple[Rule, ...] = (
    wide(
        "lives_in",
        r"我~(?:已经)?(?:不再住在|不住在?|搬离了?|从)(?=[一-龥]{2,8}(?:了|搬走|搬出|$))",
        wide_place,
        retracts=True,
    ),
    wide(
        "works_at",
        r"我~(?:已经)?(?:不再?在|从)(?=[一-龥A-Za-z]{2,12}(?:工作了?|上班了?|离职了?|辞职了?)$)",
        wide_place,
        retracts=True,
    ),
    wide(
        "email",
        r"我的?(?:旧|个人|私人|常用)?(?:电子)?(?:邮箱|邮件地址|email|Email|e-mail|E-mail)(?:地址)?(?:现在|已经|早就|早)*(?:不再是|不是)",
        email,
        retracts=True,
    ),
    wide(
        "phone",
        r"我的?(?:旧|个人)?(?:手机号?码?|电话号?码?|联系电话)(?:现在|已经|早就|早)*(?:不再是|不是)",
        wide_phone,
        retracts=True,
    ),
    wide("likes", r"我~(?:已经)?(?:不再喜欢|不喜欢|不再爱)", wide_things, retracts=True),
    wide(
        "eats",
        r"我~(?:已经)?(?:不再吃|戒了|不吃)(?!饭|早|晚|午|东西)",
        wide_things,
        retracts=True,
    ),
    wide(
        "allergic_to",
        r"我~(?:已经)?(?:不再对(?=[^，,。！!]{1,12}过敏)|对(?=[^，,。！!]{1,12}?(?:不再|不)过敏))",
        wide_allergy,
        retracts=True,
    ),
    wide(
        "does_not_eat",
        r"我~(?:现在|又|已经)*(?:可以|能|开始|又开始)吃",
        wide_things,
        retracts=True,
    ),
)

SAYS_NO_LONGER_CHINESE = re.compile(
    r"不再|不是\s?[\w.+-]+@|不是\s?\+?\d|不.{1,16}了$|搬离|搬走|离职|辞职|戒了|又(?:能|可以|开始)|(?:能|可以|开始)吃.{1,10}了$"
)
"""Without it no rule of ``ENDED_CHINESE`` holds."""
