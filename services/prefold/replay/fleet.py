"""Many replays at once, each in a process of its own, so that their measurements do not disturb each other."""

import multiprocessing
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from prefold.client import Prefold
from prefold.errors import PrefoldError
from prefold.replay.reading import read_conversation
from prefold.replay.recount import Recount
from prefold.replay.replaying import Replay, session_name
from prefold.replay.tables import Run
from prefold.tokens import load_counter


@dataclass(frozen=True, slots=True)
class Order:
    """One file to be replayed under one limit, against a running gateway."""

    path: Path
    hard_limit_tokens: int
    rate: float
    url: str
    api_key: str | None


def run_order(order: Order) -> Run:
    """Replay one file to its end. An error that ends it early stands among the faults of its figures."""
    turns = read_conversation(order.path)
    with Prefold(order.url, api_key=order.api_key) as client:
        session, recount = session_name(order.path.stem), Recount(load_counter())
        limit, rate = order.hard_limit_tokens, order.rate
        replay = Replay(client, turns, recount, session=session, hard_limit_tokens=limit, rate=rate)
        try:
            for _ in replay.steps():
                pass
            replay.finish()
        except PrefoldError as error:
            replay.figures.end_early(f"ended by {type(error).__name__}: {error.detail}")
        return Run(order.path.stem, replay.figures)


def run_orders(orders: Iterable[Order], jobs: int, on_done: Callable[[Run], None]) -> list[Run]:
    """Run all orders, ``jobs`` at a time; ``on_done`` hears of each as it ends. The first error ends them all."""
    context = multiprocessing.get_context("spawn")
    runs: list[Run] = []
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_leave_ctrl_c_to_the_parent) as pool:
        futures = [pool.submit(run_order, order) for order in orders]
        try:
            for future in as_completed(futures):
                runs.append(future.result())
                on_done(runs[-1])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            raise
    return runs


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
