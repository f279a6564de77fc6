"""The demo's two ways to show a replay while it runs: a live picture, and plain lines."""

from pathlib import Path

from rich.console import Console
from rich.live import Live

from prefold.errors import ConfigurationError
from prefold.replay.live_view import LiveView, SwapRecord
from prefold.replay.replaying import Replay, Step

HARD_LIMIT_TOKENS = 4_000
TURNS_PER_SECOND = 12.0

_FRAMES_PER_SECOND = 10
_PROGRESS_TURNS = 20


def example_path() -> Path:
    """The shipped conversation: beside this module in a wheel, under ``examples/`` in a checkout."""
    here = Path(__file__).resolve()
    for path in (here.with_name("support.jsonl"), here.parents[3] / "examples" / "support.jsonl"):
        if path.is_file():
            return path
    raise ConfigurationError("the example conversation is not installed: reinstall prefold")


def play_live(replay: Replay, turns: int, console: Console) -> None:
    """Run the replay under a picture that follows it; the last frame stays."""
    view = LiveView("Prefold demo · one support case, eight days", turns, console)
    with Live(view, console=console, refresh_per_second=_FRAMES_PER_SECOND):
        for step in replay.steps():
            view.take(step, replay.state())
        view.stop_clock()


def play_plain(replay: Replay, turns: int, console: Console) -> None:
    """Run the replay and print a line where something happens, and every twenty turns."""
    swaps = standby = 0
    for step in replay.steps():
        session, told = replay.state(), []
        if session.swaps > swaps:
            swaps = session.swaps
            told.append(_swap_line(SwapRecord.of(step)))
        if session.standby and session.standby.covers_to != standby:
            standby = session.standby.covers_to
            told.append(f"standby ready: covers turns 1-{standby}, a swap leaves {session.standby.tokens:,} tokens")
        if told or step.number % _PROGRESS_TURNS == 0:
            _tell(console, step, turns, told)


def _swap_line(swap: SwapRecord) -> str:
    took = f"in an append of {swap.append_ms:.1f} ms" if swap.append_ms is not None else "between two appends"
    return f"swap: {swap.tokens_before:,} -> {swap.tokens_after:,} tokens, {took}"


def _tell(console: Console, step: Step, turns: int, told: list[str]) -> None:
    place = f"turn {step.number:>{len(str(turns))}}/{turns}  {step.context.tokens:>6,} tokens"
    console.print("  ".join([place, *told]), highlight=False, markup=False, soft_wrap=True)
