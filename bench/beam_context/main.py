"""``./run bench beam_context``: BEAM's questions that recall cannot answer, asked with the whole context.

Each chat becomes a session of a user and is published as it was, with time for the workers; each question is then
asked with ``query``, judged, and taken back. Recall alone: the same question as a search for ten turns.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.beam_context.judging import ABILITIES, Needed, needed
from prefold.client import Prefold
from prefold.client.results import JsonObject
from prefold.evaluation.contexts import seen_context
from prefold.evaluation.gateways import own_gateway
from prefold.evaluation.played import PlayedSession
from prefold.evaluation.seen import Seen
from prefold.evaluation.shapes import Session

DATA = Path(os.environ.get("PREFOLD_DATA", Path(__file__).parents[3] / "shared" / "data"))
SECTIONS = ("profile", "recall", "ledger", "summary", "first_message", "window")
"""As a context names them; ``profile`` and the facts among ``recall`` are the facts' share."""
_PATIENCE_SECONDS = 900.0
_TENANT = "a"


@dataclass(slots=True)
class Table:
    """How often what a question needs was there, by ability and place."""

    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    tokens: list[int] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def add(self, question: str, ability: str, places: set[str], tokens: int) -> None:
        self.tokens.append(tokens)
        if "context" not in places:
            self.missed.append(question)
        for name in (ability, "all"):
            self.asked[name] += 1
            self.found.update((name, place) for place in places)

    def lines(self) -> Iterator[str]:
        places = ("recall alone", *SECTIONS, "context")
        yield "| ability | questions | " + " | ".join(places) + " |"
        yield "| --- " * (len(places) + 2) + "|"
        for name in (*ABILITIES, "all"):
            yield (
                f"| {name} | {self.asked[name]} | "
                + " | ".join(str(self.found[name, place]) for place in places)
                + " |"
            )


Tables = Mapping[int | None, Table]
"""By the budget that was asked for; None: none."""


def main(argv: Sequence[str]) -> int:
    """0 when it could be measured; nothing is promised of these figures, they are told."""
    given = _arguments(argv)
    if not DATA.is_dir():
        print(f"no recorded conversations in {DATA} (PREFOLD_DATA)", file=sys.stderr)
        return 2
    for limit in given.limits:
        for budget, table in measured(given.chats, limit, given.budgets).items():
            _print(limit, budget, table)
    return 0


def measured(chats: Sequence[str], limit: int, budgets: Sequence[int]) -> dict[int | None, Table]:
    """All questions of the chats under one limit, without a budget and with each, on a stack of their own."""
    tables: dict[int | None, Table] = {budget: Table() for budget in (None, *budgets)}
    with own_gateway([_TENANT]) as clients:
        for name in chats:
            _measure(clients[_TENANT], name, limit, tables)
            whole = tables[None]
            print(f"{name} {limit:,}: {whole.found['all', 'context']} of {whole.asked['all']} so far", flush=True)
    return tables


def _print(limit: int, budget: int | None, table: Table) -> None:
    tokens = sorted(table.tokens)
    asked = f"budget {budget:,}" if budget else "no budget"
    print(
        f"\nhard limit {limit:,}, {asked}; context {tokens[len(tokens) // 2]:,} tokens in the median, {tokens[-1]:,} at most"
    )
    print("\n".join(table.lines()))
    print("missed: " + (", ".join(table.missed) or "none"), flush=True)


def _measure(client: Prefold, name: str, limit: int, tables: Tables) -> None:
    played = PlayedSession(
        real_name=name, real_user=f"user-{name}", asked=Session(hard_limit_tokens=limit), client=client, seed=name,
        patience_seconds=_PATIENCE_SECONDS,
    )  # fmt: skip
    played.create()
    turns = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]
    for turn in turns:
        played.say(turn["role"], turn["content"], turn_id=turn["id"], at=turn.get("ts"))
    played.settle()
    for question in json.loads((DATA / f"{name}.qa.json").read_text("utf-8"))["questions"]:
        evidence = [turn["content"] for turn in turns if turn["id"] in question["evidence"]]
        want = needed(question, evidence) if question["category"] in ABILITIES else None
        if want:
            _ask(played, question, want, tables)


def _ask(played: PlayedSession, question: JsonObject, want: Needed, tables: Tables) -> None:
    text, client, head = question["question"], played.client, played.head
    hits = client.search(text, session=played.real_name, kinds=["turn"], limit=10)
    alone = {"recall alone"} if any(want.stands_in(hit.text) for hit in hits) else set()
    played.say("user", text, turn_id=question["id"].replace("/", "-"))
    for budget, table in tables.items():
        seen = seen_context(played.context(text, budget))
        table.add(question["id"], question["category"], alone | set(_places(seen, text, want)), seen.tokens or 0)
    client.rewind(played.real_name, head)
    played.head = head


def _places(seen: Seen, question: str, want: Needed) -> Iterator[str]:
    sections = {name: text.replace(question, "") for name, text in seen.sections.items()}
    for name, text in sections.items():
        if want.stands_in(text):
            yield name if name in SECTIONS else "other"
            yield "context"


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench beam_context", description=__doc__)
    parser.add_argument("chats", nargs="*", default=_chats(), help="default: every beam-100k")
    parser.add_argument(
        "--limits", type=_limits, default=(16_000, 32_000), metavar="N,N", help="hard limits, in tokens"
    )
    parser.add_argument("--budgets", type=_limits, default=(4_000,), metavar="N,N", help="asked for beside none")
    return parser.parse_args(argv)


def _chats() -> list[str]:
    return sorted(path.name.removesuffix(".qa.json") for path in DATA.glob("beam-100k-*.qa.json"))


def _limits(text: str) -> tuple[int, ...]:
    return tuple(int(part.replace("_", "")) for part in text.split(","))
