"""From a budget in served tokens to room in raw ones, and back. All in integers, as the scripts do."""

import math
from collections.abc import Mapping


def thousandths(calibration: float) -> int:
    """The calibration as the scripts keep it; never less than what was given."""
    return max(1, math.ceil(calibration * 1000 - 1e-6))


def served_tokens(raw: int, per_mille: int) -> int:
    """What a model is believed to count for ``raw`` tokens of ours, rounded up."""
    return -(-raw * per_mille // 1000)


def raw_room(budget_tokens: int, per_mille: int) -> int:
    """The most raw tokens whose served tokens are within the budget."""
    return budget_tokens * 1000 // per_mille


def served_sections(raw: Mapping[str, int], per_mille: int) -> dict[str, int]:
    """Served tokens a section, in the same order; they add up to the served tokens of the sum."""
    sections: dict[str, int] = {}
    sum_raw = sum_served = 0
    for name, tokens in raw.items():
        sum_raw += tokens
        served = served_tokens(sum_raw, per_mille)
        sections[name] = served - sum_served
        sum_served = served
    return sections
