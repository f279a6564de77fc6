"""The picture of ``prefold top``: a screen of 80 by 24 holds it; a larger one shows more sessions."""

import time
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from prefold.status.look import Look
from prefold.status.report import plain, ratio_of
from prefold.status.troubles import troubles_of
from prefold.storage.fullness import Fullness

__all__ = ["Frame"]

_MOST_TROUBLES = 4
_LEAST_SESSIONS = 3
_BAR = 20
_FAINT, _GOOD, _BAD, _WARN = "bright_black", "green", "bold red", "yellow"


class Frame:
    """Takes looks; renders the newest for whatever screen there is."""

    def __init__(self) -> None:
        self._look: Look | None = None
        self._turns_per_second: float | None = None

    def take(self, look: Look) -> None:
        """The next picture shows this look. The rate is that since the look before."""
        before, self._look = self._look, look
        self._turns_per_second = _rate(before, look)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The picture, cut to the screen."""
        if self._look is None:
            yield Text("looking …", _FAINT)
            return
        height = options.height or console.height
        head = list(self._head(self._look))
        room = max(_LEAST_SESSIONS, height - len(head) - 2)
        lines = [*head, *(_session_line(one) for one in self._look.seen.fullest[:room])]
        for line in (*lines[: height - 1], Text("q or Ctrl-C ends", _FAINT)):
            line.no_wrap, line.overflow = True, "ellipsis"
        yield Group(*lines[: height - 1], Text("q or Ctrl-C ends", _FAINT, no_wrap=True))

    def _head(self, look: Look) -> Iterator[Text]:
        rate = "-" if self._turns_per_second is None else f"{self._turns_per_second:,.1f}"
        counts = look.gateways
        yield Text.assemble(
            ("prefold", "bold"), f"  {time.strftime('%H:%M:%S', time.localtime(look.at))}  ", *_verdict(look)
        )
        yield _line("gateways", f"{counts.answered} of {counts.asked}   {rate} turns/s   {counts.failures:,} failed")
        yield _line(
            "contexts",
            f"{counts.over_limit_reads} over their limit   {counts.degraded_contexts:,} degraded",
            counts.over_limit_reads,
        )
        yield _line("standby", f"{ratio_of(counts.standby_ready_ratio)} ready at {counts.limit_crossings:,} crossings")
        yield from _work_lines(look)
        yield from _queue_lines(look)
        yield from (Text(f"! {plain(one)}", _BAD) for one in troubles_of(look)[:_MOST_TROUBLES])
        yield _sessions_line(look)


def _rate(before: Look | None, look: Look) -> float | None:
    """Turns a second; None where it cannot be told, as after a restart of a gateway."""
    if before is None or look.at <= before.at or look.gateways.answered != before.gateways.answered:
        return None
    turns = look.gateways.turns - before.gateways.turns
    return turns / (look.at - before.at) if turns >= 0 else None


def _verdict(look: Look) -> tuple[str | tuple[str, str], ...]:
    troubles = len(troubles_of(look))
    return (("all is well", _GOOD),) if not troubles else ((f"{troubles} not as it should be", _BAD),)


def _line(name: str, told: str, is_bad: object = False) -> Text:
    return Text.assemble((f"{name:<10}", _FAINT), (told, _BAD if is_bad else ""))


def _work_lines(look: Look) -> Iterator[Text]:
    store = look.store
    if store is None:
        return
    events = store.events
    waiting = f"{events.unread + events.unacknowledged:,} wait in {events.partitions} of {look.partitions} partitions"
    yield _line("events", f"{waiting}, the oldest {store.event_age_seconds:.1f} s")
    due = "  ".join(f"{kind} {count:,}" for kind, count in sorted(store.due.by_kind.items())) or "nothing"
    yield _line("due", f"{due}, the oldest {store.due_age_seconds:.1f} s")
    letters = "  ".join(f"{kind} {count:,}" for kind, count in sorted(store.letters.items())) or "none"
    yield _line("set aside", letters, store.letters)


def _queue_lines(look: Look) -> Iterator[Text]:
    for queue in look.queues or ():
        yield _line("queue", f"{queue.name:<8}{queue.jobs:>7,} jobs {queue.workers:>4,} workers", not queue.workers)


def _sessions_line(look: Look) -> Text:
    seen = look.seen
    told = (
        f"{seen.near:,} near their limit, {seen.near_without_standby:,} without a standby, {seen.degraded:,} degraded"
    )
    return _line("sessions", f"{told}; {seen.sessions:,} {'in all' if seen.is_whole else 'seen so far'}")


def _session_line(one: Fullness) -> Text:
    filled = min(_BAR, round(one.share * _BAR))
    state, style = ("degraded", _BAD) if one.is_degraded else ("standby", _GOOD) if one.has_standby else ("-", _FAINT)
    return Text.assemble(
        (f"{one.share:>5.0%} ", ""),
        ("█" * filled, _WARN if one.share >= 0.8 and not one.has_standby else _GOOD),
        ("·" * (_BAR - filled), _FAINT),
        (f" {state:<9}", style),
        f"{one.hard_limit_tokens:>9,}  {plain(one.tenant)}/{plain(one.session)}",
    )
