"""What a fact is about: how long it stays true, how much it matters, and the words of questions about it. Data."""

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Final

from prefold.facts.names import normal_text
from prefold.facts.rows import CATEGORIES, Category

__all__ = ["TRAITS", "Trait", "categories_of", "category_of"]


@dataclass(frozen=True, slots=True)
class Trait:
    """One category."""

    half_life: timedelta | None
    """After so long without being said again a row counts half; None: it stays as it is."""
    life: timedelta | None
    """After so long it is not served any more; None: only an explicit time ends it."""
    rank: int
    """Place in the profile: the lowest first. Rules for every answer, then what may do harm, then who the user is."""
    english: str
    """Words and phrases of questions; a trailing ``*`` takes any ending."""
    chinese: str


_DAYS = timedelta(days=1)

TRAITS: Final[dict[Category, Trait]] = {
    "instruction": Trait(
        None,
        None,
        0,
        "answer* repl* respond* format* tone style language bullet* concise brief* verbose instruct* remind* always never",
        "回答 回复 格式 语气 风格 语言 简短 详细 要求 提醒 总是",
    ),
    "constraint": Trait(
        180 * _DAYS,
        None,
        1,
        "budget* afford* limit* constraint* cannot must deadline* allow* availab* free when spend* cost* price* requirement* restrict* permit* travel*",
        "预算 限制 不能 必须 期限 截止 有空 空闲 什么时候 花费 价格 费用 条件",
    ),
    "health": Trait(
        730 * _DAYS,
        None,
        2,
        "allerg* health* medic* doctor* diet* disease* ill illness condition* symptom* vegetarian vegan eat* food* meal* cook* recipe* restaurant* dinner lunch breakfast"
        " snack* dish* ingredient* drink* pain* sick* intoleran* gluten nut nuts dairy lactose diabet* pill* drug*",
        "过敏 健康 药 医生 饮食 病 症状 素食 吃 食物 菜 餐 晚饭 午饭 早饭 做饭 食谱 喝 疼 不耐受",
    ),
    "identity": Trait(
        None,
        None,
        3,
        "name* age old birthday* born nationality pronoun* gender who citizen* native speak* language* height called",
        "名字 姓名 叫什么 年龄 多大 几岁 生日 出生 国籍 性别 是谁 母语 身高 老家 哪里人",
    ),
    "contact": Trait(
        1095 * _DAYS,
        None,
        4,
        "email* mail* phone* telephone call reach contact* address* number* website* username* account* ship* deliver*",
        "邮箱 邮件 电话 手机 联系 地址 号码 网站 用户名 账号 寄",
    ),
    "location": Trait(
        1095 * _DAYS,
        None,
        5,
        "where live* living reside* city country town home house based move* moved location* local near nearby weather timezone time zone region abroad neighbo*",
        "哪里 哪儿 住 城市 国家 家 搬 位置 附近 天气 时区 地方",
    ),
    "work": Trait(
        730 * _DAYS,
        None,
        6,
        "work* job* employ* company compan* office* career* profession* occupation* boss* colleague* coworker* project* team* salary role study* studies studi*"
        " school* universit* college* major* degree* resume* interview* meeting*",
        "工作 职业 公司 单位 上班 同事 老板 项目 团队 工资 职位 学校 大学 专业 学习 简历 面试 会议",
    ),
    "family": Trait(
        1460 * _DAYS,
        None,
        7,
        "famil* wife husband spouse partner* married marri* child* kid* son* daughter* mother* father* mom mum dad parent* sister* brother* sibling* cousin*"
        " grandm* grandf* friend* girlfriend boyfriend pet* dog* cat* relative* aunt uncle",
        "家人 家庭 妻子 丈夫 老婆 老公 孩子 儿子 女儿 妈妈 母亲 爸爸 父亲 父母 姐姐 妹妹 哥哥 弟弟 朋友 女朋友 男朋友 宠物 狗 猫 亲戚",
    ),
    "preference": Trait(
        730 * _DAYS,
        None,
        8,
        "like* prefer* favo* enjoy* love* hate* dislike* hobb* interest* recommend* suggest* taste* music* movie* book* game* sport* watch* read* listen* play*"
        " gift* fun weekend*",
        "喜欢 偏好 最爱 爱好 兴趣 讨厌 推荐 建议 音乐 电影 书 游戏 运动 礼物 周末 口味",
    ),
    "plan": Trait(
        60 * _DAYS,
        365 * _DAYS,
        9,
        "plan* going trip* travel* vacation* holiday* next tomorrow upcoming schedule* appointment* goal* intend* visit* future flight* event*",
        "计划 打算 旅行 旅游 假期 度假 明天 下周 下个月 安排 日程 预约 目标 航班 准备",
    ),
    "possession": Trait(
        730 * _DAYS,
        None,
        10,
        "own* have car* bike* phone* computer* laptop* device* vehicle* drive* house* apartment* bought buy* subscription*",
        "有什么 车 自行车 手机 电脑 设备 房子 公寓 买 订阅",
    ),
    "other": Trait(365 * _DAYS, 730 * _DAYS, 11, "", ""),
}
"""Half-lives: names and standing rules do not wear off; what one does for a living, likes and owns changes within
years; plans within months. They are a judgement, not a measurement."""


@cache
def _cues(category: Category) -> re.Pattern[str] | None:
    trait = TRAITS[category]
    words = [re.escape(cue.removesuffix("*")) + (r"\w*" if cue.endswith("*") else "") for cue in trait.english.split()]
    if not words:
        return None
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(words)})(?![a-z0-9])|{'|'.join(trait.chinese.split())}")


def categories_of(query: str) -> frozenset[Category]:
    """What the query may be about, by its words; empty: it does not say."""
    text = normal_text(query)
    found = ((category, _cues(category)) for category in CATEGORIES)
    return frozenset(category for category, cues in found if cues is not None and cues.search(text))


def category_of(name: str) -> Category:
    """The category of that name; ``other`` for one that is none."""
    return next((one for one in CATEGORIES if one == name), "other")
