"""``prefold replay``, ``prefold demo`` and ``prefold context``."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from prefold.client import Context, Prefold, Session
from prefold.replay.arguments import (
    ReplayArguments,
    Target,
    gateway,
    parse_context_arguments,
    parse_demo_arguments,
    parse_replay_arguments,
)
from prefold.replay.demo import example_path, play_live, play_plain
from prefold.replay.demo_end import print_end
from prefold.replay.figures import Figures
from prefold.replay.fleet import Order, run_orders
from prefold.replay.reading import FileTurn, read_conversation
from prefold.replay.recount import Recount
from prefold.replay.replaying import Replay, session_name
from prefold.replay.sections import print_sections
from prefold.replay.signals import interrupted_once
from prefold.replay.tables import Run, print_result, print_runs
from prefold.tokens import load_counter

OK = 0
FAULTY = 1

_PAPER_COLUMNS = 110
"""Width of the long table where nobody watches."""


def main(argv: Sequence[str]) -> int:
    """``prefold replay``: 0 when nothing was over its limit, invalid or lost, else 1."""
    arguments = parse_replay_arguments(argv)
    with interrupted_once():
        if len(arguments.files) * len(arguments.limits) > 1:
            return _replay_many(arguments)
        return _replay_one(arguments)


def demo(argv: Sequence[str]) -> int:
    """``prefold demo``: 0 when nothing was over its limit, invalid or lost, else 1."""
    arguments = parse_demo_arguments(argv)
    console = Console(quiet=arguments.is_json)
    turns = read_conversation(example_path())
    play = play_live if console.is_terminal and not arguments.is_plain else play_plain
    with interrupted_once(), _connected(arguments.target, console) as client:
        replay = _replay(client, turns, session_name("demo"), arguments.hard_limit_tokens, arguments.rate)
        play(replay, len(turns), console)
        figures = replay.finish()
        print_end(console, client.context(replay.session), figures)
    return _end(figures, is_json=arguments.is_json)


def context(argv: Sequence[str]) -> int:
    """``prefold context SESSION``: what the model would see, from a running gateway."""
    arguments = parse_context_arguments(argv)
    with Prefold(arguments.url, api_key=arguments.api_key) as client:
        served = client.context(arguments.session, format=arguments.form)
        if arguments.is_raw:
            ready = served.anthropic() if arguments.form == "anthropic" else served.openai()
            print(json.dumps(ready, ensure_ascii=False, indent=2))
            return OK
        state = client.session(arguments.session)
    console = Console()
    console.print(_context_line(served, state))
    print_sections(console, served, is_whole=True)
    return OK


def _replay_one(arguments: ReplayArguments) -> int:
    path, limit = arguments.files[0], arguments.limits[0]
    turns = read_conversation(path)
    session = arguments.session or session_name(path.stem)
    with _connected(arguments.target, Console(stderr=True)) as client:
        replay = _replay(client, turns, session, limit, arguments.rate)
        with _progress() as progress:
            for _ in progress.track(replay.steps(), total=len(turns), description=path.name):
                pass
        figures = replay.finish()
    if not arguments.is_json:
        print_result(Console(), figures)
    return _end(figures, is_json=arguments.is_json)


def _replay_many(arguments: ReplayArguments) -> int:
    key = arguments.target.api_key
    with _started(arguments.target, Console(stderr=True)) as url, _progress() as progress:
        orders = [
            Order(path, limit, arguments.rate, url, key) for path, limit in product(arguments.files, arguments.limits)
        ]
        task = progress.add_task("replays", total=len(orders))
        runs = run_orders(orders, arguments.jobs, lambda _run: progress.advance(task))
    if arguments.is_json:
        for run in runs:
            print(json.dumps(_run_line(run)))
    else:
        print_runs(Console(width=None if sys.stdout.isatty() else _PAPER_COLUMNS), runs)
    return OK if all(run.figures.is_clean for run in runs) else FAULTY


@contextmanager
def _started(target: Target, console: Console) -> Iterator[str]:
    """URL of the gateway; the seconds until a stack of our own is up are told where somebody watches."""
    with ExitStack() as stack:
        with console.status("starting …"):
            url = stack.enter_context(gateway(target))
        yield url


@contextmanager
def _connected(target: Target, console: Console) -> Iterator[Prefold]:
    with _started(target, console) as url, Prefold(url, api_key=target.api_key) as client:
        yield client


def _replay(client: Prefold, turns: Sequence[FileTurn], session: str, limit: int, rate: float) -> Replay:
    recount = Recount(load_counter())
    return Replay(client, turns, recount, session=session, hard_limit_tokens=limit, rate=rate)


def _run_line(run: Run) -> dict[str, object]:
    crossings = run.figures.judged_crossings
    ready = sum(crossing.is_ready for crossing in crossings)
    return {"file": run.name, **run.figures.json_line(), "crossings_in_time": len(crossings), "ready_in_time": ready}


def _end(figures: Figures, *, is_json: bool) -> int:
    if is_json:
        print(json.dumps(figures.json_line()))
    return OK if figures.is_clean else FAULTY


def _progress() -> Progress:
    # On stderr, so that standard output has the result alone; nothing where nobody watches.
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


def _context_line(served: Context, state: Session) -> Text:
    told = (
        f"version {served.version}, {served.status}: {served.tokens:,} of {state.hard_limit_tokens:,} tokens; "
        f"{state.head_seq} turns, summary up to {served.covers_to}, {state.swaps} swaps"
    )
    return Text.assemble((state.session, "bold"), "  ", told)
