"""What summaries cost that a model writes: how often they are built, what is read and written, and what a swap leaves."""

import asyncio

from bench.reduction.main import LONG_LIMIT, by_limit, play_all
from bench.reduction.sources import conversations


def summary_costs(talks: int) -> dict[str, float]:
    """Of recorded conversations at a usual pace, with a usual model's time, on a clock of their own (``bench reduction``)."""
    long, _ = by_limit(conversations(()))
    played = asyncio.run(play_all(long[:talks], LONG_LIMIT, seed=1, engine="faithful"))
    swaps = [swap for talk in played for swap in talk.swaps]
    builds = sum(talk.builds.begun for talk in played)
    if not swaps:
        raise ValueError(
            f"no conversation of more than {LONG_LIMIT} tokens: PREFOLD_DATA has to name a folder with some"
        )
    return {
        "builds_per_swap": builds / len(swaps),
        "after_swap_share": sum(swap.after / LONG_LIMIT for swap in swaps) / len(swaps),
        "read_share": sum(talk.read_tokens for talk in played) / sum(talk.tokens for talk in played),
        "summary_tokens": sum(talk.written_tokens for talk in played) / builds,
    }
