"""``./run bench side_by_side``: the same conversation through each side, with a model that takes seconds a summary.

agent-memory-server is no side: it needs a Redis with the JSON and search modules, which no package here brings. README has
what was measured of its 0.14.0 apart.
"""

import argparse
import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.paced.model import served_model
from bench.side_by_side.sides import Everything, Served, Side, ThroughLangChain, langchain_side, prefold_side
from bench.side_by_side.talk import PLANTED, Exchange, exchanges, kept
from prefold.tokens import load_counter

_MESSAGE_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    side: str
    waited_p50_ms: float
    waited_p99_ms: float
    waited_worst_ms: float
    waited_total_s: float
    largest_context_tokens: int
    over_limit: int
    """Calls of the chat's model that got more than the limit."""
    sent_tokens: int
    """Input of all these calls."""
    values_kept: int | None
    """Of the planted ones, in the last context; None where only the model decides: this one quotes at random."""
    summary_calls: int
    """Calls of the model that writes summaries."""


def main(argv: Sequence[str]) -> int:
    """Prints a table. 1: Prefold let somebody wait for a summary, or crossed its limit."""
    given = _arguments(argv)
    seed = int(os.environ.get("PREFOLD_SEED", "1"))
    talk = exchanges(given.exchanges, seed)
    outcomes: list[Outcome] = []
    for name in ("everything", "langchain", "prefold"):
        with ExitStack() as stack:
            model = stack.enter_context(
                served_model(["--brain", "faithful", "--latency", str(given.model_seconds), "--seed", str(seed)])
            )
            side: Side
            if name == "everything":
                side = Everything()
            elif name == "prefold":
                side = stack.enter_context(prefold_side(model.url, given.hard_limit, given.pause))
            elif given.langchain:
                side = stack.enter_context(langchain_side(given.langchain, model.url, given.hard_limit))
            else:
                print("left out: LangChain; --langchain PYTHON names a Python that has langchain, langchain-anthropic")
                continue
            served = [side.take(exchange) for exchange in talk]
            outcomes.append(outcome_of(side.name, served, given.hard_limit, len(model.calls())))
    print(told(outcomes, talk, given.hard_limit, given.model_seconds, seed))
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n", "utf-8")
    ours = outcomes[-1]
    is_well = ours.waited_worst_ms < given.model_seconds * 1000 / 2 and not ours.over_limit
    return 0 if is_well else 1


def outcome_of(side: str, served: Sequence[Served], limit: int, calls: int) -> Outcome:
    """The figures; tokens of every side by the same counter."""
    count = load_counter().count
    waited = sorted(1000 * one.waited for one in served)
    tokens = [sum(count(text) + _MESSAGE_TOKENS for text in one.texts) for one in served]
    return Outcome(
        side=side,
        waited_p50_ms=waited[len(waited) // 2],
        waited_p99_ms=waited[min(len(waited) - 1, len(waited) * 99 // 100)],
        waited_worst_ms=waited[-1],
        waited_total_s=sum(waited) / 1000,
        largest_context_tokens=max(tokens),
        over_limit=sum(one > limit for one in tokens),
        sent_tokens=sum(tokens),
        values_kept=None if side == ThroughLangChain.name else kept("\n".join(served[-1].texts)),
        summary_calls=calls,
    )


def told(outcomes: Sequence[Outcome], talk: Sequence[Exchange], limit: int, seconds: float, seed: int) -> str:
    """The table."""
    heads = ("p50 ms", "p99 ms", "worst ms", "waited s", "largest", "over", "sent", "calls", "values")
    lines = [f"{len(talk)} exchanges, limit {limit} tokens, {seconds:g} s a model call, seed {seed}"]
    lines.append(f"{'':<34}" + "".join(f"{head:>10}" for head in heads))
    lines += map(_line, outcomes)
    return "\n".join(lines)


def _line(one: Outcome) -> str:
    waits = (one.waited_p50_ms, one.waited_p99_ms, one.waited_worst_ms, one.waited_total_s)
    counts = (one.largest_context_tokens, one.over_limit, one.sent_tokens, one.summary_calls)
    values = "-" if one.values_kept is None else f"{one.values_kept} of {len(PLANTED)}"
    numbers = [f"{wait:.1f}" for wait in waits] + [str(count) for count in counts] + [values]
    return f"{one.side:<34}" + "".join(f"{number:>10}" for number in numbers)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench side_by_side", description=__doc__)
    parser.add_argument("--exchanges", type=int, default=150)
    parser.add_argument("--hard-limit", type=int, default=8000, metavar="TOKENS")
    parser.add_argument("--model-seconds", type=float, default=3.0, help="what a summary's call takes")
    parser.add_argument(
        "--pause", type=float, default=0.5, help="seconds between exchanges, where work goes on meanwhile"
    )
    parser.add_argument("--langchain", type=Path, metavar="PYTHON", help="with langchain and langchain-anthropic")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures, as JSON")
    return parser.parse_args(argv)
