"""``./run bench reduction``: plays conversations on a clock of its own and says what swaps saved and builds cost."""

import argparse
import asyncio
import json
import logging
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import structlog

from bench.reduction.engines import ENGINES, builders
from bench.reduction.figures import Reduction, TalkFigures, part_shares, percentile, summed
from bench.reduction.sources import Conversation, conversations
from bench.reduction.talk import LEASE, Talk, log_normal
from bench.servers import session_server
from prefold.storage import Defaults, connect_sessions

MOST_MEDIAN_SHARE = 0.30
"""Promised at 32k: the context after a swap against the one before, in the median."""
MOST_UNUSED = 0.20
"""Promised: builds that no swap used, one replaced by a fresher one not counted."""
LONG_LIMIT, SHORT_LIMIT = 32_000, 8_000
TOKENS_PER_SECOND = 20.0
"""A turn of 600 tokens each half minute: from soft (0.7) to hard at 32k takes 480 s."""
BUILD_MEDIAN_SECONDS, BUILD_P95_SECONDS = 20.0, 60.0


def main(argv: Sequence[str]) -> int:
    """Exit code 1: a promise is missed."""
    given = _arguments(argv)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    seed = int(os.environ.get("PREFOLD_SEED", "1"))
    print(f"PREFOLD_SEED={seed}, {given.pace:g} tokens a second, engine {given.engine}", flush=True)
    long, short = by_limit(conversations(given.files))
    kept = True
    found: list[Reduction] = []
    for limit, played in ((given.limit, long), (given.short_limit, short)):
        playing = play_all(played, limit, seed=seed, pace=given.pace, soft_ratio=given.soft_ratio, engine=given.engine)
        talks = asyncio.run(playing)
        if not talks:
            continue
        total = summed(limit, talks)
        found.append(total)
        _print(talks, total)
        kept = kept and (limit != given.limit or is_kept(total))
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", "utf-8")
    return 0 if kept else 1


def is_kept(total: Reduction) -> bool:
    return total.median <= MOST_MEDIAN_SHARE and total.unused_share <= MOST_UNUSED and total.over_limit == 0


def by_limit(
    found: Sequence[Conversation], limit: int = LONG_LIMIT, short_limit: int = SHORT_LIMIT
) -> tuple[list[Conversation], list[Conversation]]:
    """Those long enough for a swap at ``limit``, and of the others those at ``short_limit``."""
    long = [one for one in found if one.tokens > limit]
    return long, [one for one in found if short_limit < one.tokens <= limit]


async def play_all(
    played: Sequence[Conversation],
    limit: int,
    *,
    seed: int,
    pace: float = TOKENS_PER_SECOND,
    soft_ratio: float | None = None,
    engine: str = "extractive",
) -> list[TalkFigures]:
    """One after another on a server of their own."""
    talks = []
    with session_server("fast") as server:
        url = f"unix://{server.connection_pool.connection_kwargs['path']}"
        defaults = Defaults(lead=timedelta(seconds=BUILD_P95_SECONDS))  # as if this had been measured
        async with (
            connect_sessions(url, defaults=defaults) as sessions,
            builders(engine, sessions, url, LEASE) as make,
        ):
            for conversation in played:
                source = random.Random(f"{seed} {conversation.name}")
                seconds = log_normal(source, BUILD_MEDIAN_SECONDS, BUILD_P95_SECONDS)
                talk = Talk(
                    sessions, make, conversation, limit, tokens_per_second=pace, seconds=seconds, soft_ratio=soft_ratio
                )
                talks.append(await talk.play())
    return talks


def _print(talks: Sequence[TalkFigures], total: Reduction) -> None:
    print(f"\nhard limit {total.hard_limit}")
    print(
        f"{'conversation':<34}{'tokens':>8}{'swaps':>7}{'median':>8}{'p90':>7}   builds: used replaced waiting failed"
    )
    for talk in talks:
        shares = [swap.share for swap in talk.swaps]
        builds = talk.builds
        print(
            f"{talk.name:<34}{talk.tokens:>8}{len(shares):>7}{percentile(shares, 0.5):>8.1%}{percentile(shares, 0.9):>7.1%}"
            f"   {builds.used:>12}{builds.replaced:>9}{builds.waiting:>8}  {dict(builds.failed) or ''}"
        )
    parts = ", ".join(f"{part} {share:.1%}" for part, share in part_shares(talks).items())
    builds = total.builds
    print(
        f"{total.talks} conversations, {total.swaps} swaps: after/before median {total.median:.1%}, p90 {total.p90:.1%}\n"
        f"of the limit after a swap, mean: {parts}\n"
        f"builds {builds.begun}: used {builds.used}, replaced {builds.replaced}, waiting at the end {builds.waiting}, "
        f"failed {dict(builds.failed)}; unused {total.unused_share:.1%} (without the replaced {total.unused_share_strict:.1%})\n"
        f"summaries by {dict(total.engine)}\n"
        f"crossings {total.crossings}, of them ready {total.ready}; contexts over the limit {total.over_limit}",
        flush=True,
    )


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench reduction", description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, help="JSONL conversations; default: the data folder, else the sample"
    )
    parser.add_argument("--engine", choices=ENGINES, default="extractive")
    parser.add_argument("--limit", type=int, default=LONG_LIMIT, help="hard limit of long conversations")
    parser.add_argument("--short-limit", type=int, default=SHORT_LIMIT, help="hard limit of the others")
    parser.add_argument("--pace", type=float, default=TOKENS_PER_SECOND, help="tokens of the talk in a second")
    parser.add_argument("--soft-ratio", type=float, default=None, help="fixed; default: as the product does")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the sums, as JSON")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
