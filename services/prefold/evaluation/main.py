"""``prefold eval``: reads cases, plays them on a running stack, and judges."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager

from rich.console import Console
from rich.progress import Progress

from prefold.errors import ConfigurationError
from prefold.evaluation.arguments import EvalArguments, parse_arguments
from prefold.evaluation.cases import Case, read_cases
from prefold.evaluation.gateways import Clients, own_gateway, running_gateway
from prefold.evaluation.playing import Outcome, Rules, play
from prefold.evaluation.report import outcomes_json, print_cases, print_outcomes

OK = 0
FAILED = 1

_PAPER_COLUMNS = 140
"""Width of the table where nobody watches."""


def main(argv: Sequence[str]) -> int:
    """0: every case passed; 1: one did not. Raises ConfigurationError for cases that cannot be read."""
    arguments = parse_arguments(argv)
    cases = _chosen(read_cases(arguments.paths), arguments.filters)
    console = Console(width=None if sys.stdout.isatty() else _PAPER_COLUMNS)
    if arguments.only_lists:
        print_cases(console, cases)
        return OK
    started = time.monotonic()
    outcomes = _play_all(cases, arguments)
    seconds = time.monotonic() - started
    if arguments.is_json:
        console.out(json.dumps(outcomes_json(outcomes, seed=arguments.seed, seconds=seconds), ensure_ascii=False))
    else:
        print_outcomes(console, outcomes)
    return OK if all(outcome.passed for outcome in outcomes) else FAILED


def _chosen(cases: Sequence[Case], filters: Sequence[str]) -> list[Case]:
    chosen = [case for case in cases if not filters or any(part in case.name for part in filters)]
    if not chosen:
        raise ConfigurationError(f"no case has {' or '.join(filters)} in its name; prefold eval --list tells the names")
    return chosen


def _play_all(cases: Sequence[Case], arguments: EvalArguments) -> list[Outcome]:
    rules = Rules(arguments.seed, arguments.patience_seconds, erases=arguments.url is not None and not arguments.keeps)
    with _started(cases, arguments) as clients, _progress() as progress:
        task = progress.add_task("cases", total=len(cases))

        def run(case: Case) -> Outcome:
            outcome = play(case, clients, rules)
            progress.advance(task)
            return outcome

        with ThreadPoolExecutor(arguments.jobs) as pool:
            return list(pool.map(run, cases))


@contextmanager
def _started(cases: Sequence[Case], arguments: EvalArguments) -> Iterator[Clients]:
    """The clients; the seconds until a stack of our own is up are told where somebody watches."""
    with ExitStack() as stack:
        with Console(stderr=True).status("starting …"):
            clients = stack.enter_context(_gateway(cases, arguments))
        yield clients


def _gateway(cases: Sequence[Case], arguments: EvalArguments) -> AbstractContextManager[Clients]:
    if arguments.url is not None:
        return running_gateway(arguments.url, arguments.keys)
    return own_gateway({tenant for case in cases for tenant in case.tenants})


def _progress() -> Progress:
    # On stderr, so that standard output has the result alone; nothing where nobody watches.
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)
