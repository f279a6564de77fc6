"""The sections of a summary that a model writes: their keys, and their titles in each language."""

SECTION_KEYS = ("intent", "corrections", "constraints", "values", "decisions", "errors", "done", "pending", "state")
"""In the order in which they stand."""
BINDING_KEYS = frozenset({"corrections", "constraints"})
"""Sections that bind whoever reads them: nothing but what a person said may stand there."""
REQUIRED_KEYS = frozenset({"intent", "state"})

_TITLES = {
    "en": {
        "intent": "Intent",
        "corrections": "Corrections",
        "constraints": "Constraints",
        "values": "Exact values",
        "decisions": "Decisions and rejected options",
        "errors": "Errors and fixes",
        "done": "Done or superseded",
        "pending": "Pending",
        "state": "Current state",
    },
    "zh": {
        "intent": "意图",
        "corrections": "更正",
        "constraints": "限制与要求",
        "values": "确切数值",
        "decisions": "决定与被否决的方案",
        "errors": "错误与修复",
        "done": "已完成或已被取代",
        "pending": "待办",
        "state": "当前状态",
    },
    "ja": {
        "intent": "目的",
        "corrections": "訂正",
        "constraints": "制約",
        "values": "正確な値",
        "decisions": "決定事項と却下案",
        "errors": "エラーと修正",
        "done": "完了・無効",
        "pending": "未完了",
        "state": "現在の状態",
    },
}
_OTHER_NAMES = {
    "intent": "intents, goal, goals, purpose, user intent, user's intent, user goal, 目标, 目的, 用户意图, 用户目标, 意図, 意图, ゴール",
    "corrections": "correction, 修正, 纠正, 更正事项, 訂正事項",
    "constraints": "constraint, limits, requirements, constraints and requirements, 限制, 约束, 约束条件, 要求, 制約条件, 制限",
    "values": "value, exact value, values and facts, facts, key facts, 数值, 精确值, 具体数值, 准确数值, 値, 正確な数値",
    "decisions": "decision, decisions made, decisions and rejections, 决定, 决策, 决定事项, 決定, 決定事項",
    "errors": "error, errors and solutions, 错误, 错误与解决, エラー",
    "done": "completed, finished, superseded, done / superseded, done/superseded, 已完成, 完成, 完了, 完了済み",
    "pending": "open, todo, to do, to-do, next steps, pending tasks, pending items, 待处理, 未完成, 待办事项, 保留中, 未対応",
    "state": "status, current status, 状态, 目前状态, 现状, 現状, 状況",
}


def title_of(key: str, language: str) -> str:
    """The title of section ``key``; in English where there is none in ``language``; the key for one not of ours."""
    return _TITLES.get(language, _TITLES["en"]).get(key, key)


def key_of(title: str) -> str | None:
    """The key that a heading means, however a model spelled it; None: no section of ours."""
    return _KEYS.get(_folded(title))


def _folded(title: str) -> str:
    return " ".join(title.lower().replace("_", " ").strip(" *_#:：-–—.。").split())


def _all_keys() -> dict[str, str]:
    known = {_folded(title): key for titles in _TITLES.values() for key, title in titles.items()}
    known.update({_folded(name): key for key, names in _OTHER_NAMES.items() for name in names.split(",")})
    return known | {key: key for key in SECTION_KEYS}


_KEYS = _all_keys()
