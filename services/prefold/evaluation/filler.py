"""Small talk between what matters in a case: impersonal, the same for a seed, and about nothing that a case asks."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from prefold.evaluation.shapes import Language


class _Words(NamedTuple):
    things: Sequence[str]
    questions: Sequence[str]
    openings: Sequence[str]
    reasons: Sequence[str]
    closings: Sequence[str]
    between: str


_EN = _Words(
    things=(
        "granite", "birch bark", "tides", "paper kites", "brass hinges", "moss", "lighthouses", "wool", "glaciers",
        "chalk", "barometers", "canal locks", "beehives", "copper roofs", "church bells", "salt flats", "sundials",
        "cobblestones", "windmills", "amber", "ferns", "clay tiles", "river deltas", "rope bridges", "cork oak",
        "weather vanes", "slate", "hedgerows", "lanterns", "dunes", "waterwheels", "limestone caves", "ash trees",
        "steam whistles", "papyrus", "peat bogs", "stone walls", "pendulums", "kelp forests", "thatched roofs",
    ),
    questions=(
        "What is known about how {} changed over the centuries?",
        "Why do people write so much about {}?",
        "Is there a simple way to explain {} to a child?",
        "How do {} and {} compare?",
        "What surprises visitors most about {}?",
        "Which mistakes are common in books on {}?",
        "Can {} be told from a photograph?",
        "What links {} with {}?",
        "Where does the oldest account of {} come from?",
        "Does the season make a difference for {}?",
    ),
    openings=(
        "There are several accounts of {} and they disagree in places.",
        "With {} it mostly depends on where one looks.",
        "The usual explanation of {} leaves out the weather.",
        "Painters drew {} long before anybody measured them.",
        "A museum in the north has a whole room about {}.",
    ),
    reasons=(
        "Damp air and slow wear do more than anything sudden.",
        "Older drawings show the shape rather well, the colours less so.",
        "Local names differ from valley to valley, which confuses the catalogues.",
        "What looks regular from afar turns out uneven up close.",
        "Trade along the coast spread the practice faster than any book.",
        "Most of the evidence lies in ledgers of small towns.",
    ),
    closings=(
        "A good survey of it came out a few years ago.",
        "That is the short version; the long one fills shelves.",
        "Nobody has settled the rest.",
        "So a map helps more than a chronicle.",
        "It is worth a slow look.",
    ),
    between=" ",
)  # fmt: skip

_ZH = _Words(
    things=(
        "花岗岩", "潮汐", "风筝", "苔藓", "灯塔", "冰川", "气压计", "运河船闸", "铜屋顶", "钟楼", "盐湖", "日晷",
        "鹅卵石路", "风车", "琥珀", "蕨类", "陶瓦", "三角洲", "绳桥", "石墙", "水车", "溶洞", "莎草纸", "沙丘",
    ),
    questions=(
        "关于{}，几百年来有哪些变化？",
        "为什么有那么多书写{}？",
        "怎样简单地介绍{}？",
        "{}和{}有什么不同？",
        "书里讲{}常见的错误是什么？",
        "季节对{}有影响吗？",
        "最早记载{}的是哪里？",
    ),
    openings=(
        "关于{}的说法不止一种，有些地方互相矛盾。",
        "{}主要看在什么地方观察。",
        "通常对{}的解释忽略了天气。",
        "画家很早就画过{}。",
    ),
    reasons=(
        "潮湿的空气和缓慢的磨损影响最大。",
        "古画里形状画得很准，颜色就差一些。",
        "各个山谷的叫法不一样，所以目录很乱。",
        "远看整齐，近看其实参差不齐。",
        "沿海的贸易传播得比书本更快。",
    ),
    closings=("剩下的问题还没有定论。", "这只是简短的说法。", "所以地图比年份更有用。", "值得慢慢看。"),
    between="",
)  # fmt: skip

_ANSWERS_OF_A_LONG_ONE = 6
_WORDS: Mapping[Language, _Words] = {"en": _EN, "zh": _ZH}


def small_talk(seed: str, language: Language) -> Iterator[tuple[str, str]]:
    """Endless pairs of a question and its answer, the same for the same seed."""
    chance, words = random.Random(f"{seed} {language}"), _WORDS[language]  # noqa: S311  # no secret
    while True:
        yield _pair(chance, words)


def at_length(talk: Iterator[tuple[str, str]], language: Language) -> tuple[str, str]:
    """The next question with an answer as long as an assistant's often are: that of several questions."""
    pairs = [next(talk) for _ in range(_ANSWERS_OF_A_LONG_ONE)]
    return pairs[0][0], _WORDS[language].between.join(answer for _, answer in pairs)


def _pair(chance: random.Random, words: _Words) -> tuple[str, str]:
    thing, other = chance.sample(words.things, 2)
    question = chance.choice(words.questions).format(thing, other)
    reasons = chance.sample(words.reasons, chance.randint(0, 2))
    answer = [chance.choice(words.openings).format(thing), *reasons, chance.choice(words.closings)]
    return question, words.between.join(answer)
