"""The demo's picture while it runs: gauge, saw-tooth, standby, last turns, swaps. Draws only; it asks nobody."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from prefold.client import Session
from prefold.replay.charts import ABOVE_SOFT, BELOW_SOFT, FAINT, HEAD, Gauge, SawTooth
from prefold.replay.figures import percentile
from prefold.replay.replaying import Step
from prefold.replay.words import clipped, speaker_and_gist

_FIXED_LINES = 13
"""All but the saw-tooth's rows and the last turns."""
_SPEAKER_STYLES = {"user": "bold", "assistant": "", "→ tool": "cyan", "← tool": "cyan", "system": "magenta"}
_KEPT_TURNS = 40
_SWAP_COLUMNS = 31


@dataclass(frozen=True, slots=True)
class SwapRecord:
    """One swap, as the demo shows it."""

    turn: int
    tokens_before: int
    tokens_after: int
    append_ms: float | None
    """Of the append that swapped; None where a summary that had just been finished swapped between two appends."""

    @classmethod
    def of(cls, step: Step) -> Self:
        """The record of the swap that was noticed at this step."""
        return cls(step.number, step.tokens_before, step.context.tokens, step.append_ms if step.swapped else None)


@dataclass(slots=True)
class LiveView:
    """Takes each step, and renders the whole frame when rich asks for it."""

    title: str
    turns: int
    console: Console
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    swaps: list[SwapRecord] = field(default_factory=list)
    _swap_count: int = 0
    _session: Session | None = None
    _step: Step | None = None
    _tokens: list[int] = field(default_factory=list)
    _append_ms: list[float] = field(default_factory=list)
    _last: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_KEPT_TURNS))

    def take(self, step: Step, session: Session) -> None:
        """The next frame shows this step."""
        self._step, self._session = step, session
        self._tokens.append(step.appended.context.tokens)
        self._append_ms.append(step.append_ms)
        self._last.append(speaker_and_gist(step.turn))
        if session.swaps > self._swap_count:
            self._swap_count = session.swaps
            self.swaps.append(SwapRecord.of(step))

    def stop_clock(self) -> None:
        """The last frame stands."""
        self.ended = time.monotonic()

    def __rich__(self) -> RenderableType:
        """The frame."""
        if self._step is None or self._session is None:
            return Text("starting …", FAINT)
        rows = 4 if self.console.height < 30 else 6
        context, session = self._step.appended.context, self._session
        soft, hard = session.soft_threshold_tokens, session.hard_limit_tokens
        marks = [swap.turn - 1 for swap in self.swaps]
        return Group(
            self._heading(),
            Text(""),
            self._size(),
            Gauge(context.tokens, context.window_tokens, soft, hard),
            Text(""),
            SawTooth(self._tokens, marks, self.turns, soft, hard, rows),
            self._standby(),
            Text(""),
            self._lower(max(3, min(12, self.console.height - _FIXED_LINES - rows))),
        )

    def _heading(self) -> Table:
        assert self._step is not None
        seconds = (self.ended or time.monotonic()) - self.started
        right = Text(f"turn {self._step.number} of {self.turns} · {seconds:.1f} s", FAINT)
        return _two_ends(Text(self.title, "bold"), right)

    def _size(self) -> Table:
        assert self._step is not None
        context = self._step.appended.context
        head = context.tokens - context.window_tokens
        left = Text.assemble(
            "context ", (f"{context.tokens:,}", "bold"), f" of {context.hard_limit_tokens:,} tokens  ",
            ("█", HEAD), (f" head {head:,}  ", FAINT),
            ("█", ABOVE_SOFT if context.status != "ok" else BELOW_SOFT), (f" window {context.window_tokens:,}", FAINT),
        )  # fmt: skip
        return _two_ends(left, Text(f"version {context.version} · {context.status}", FAINT))

    def _standby(self) -> Text:
        assert self._session is not None
        session = self._session
        label = Text("standby ", FAINT)
        if session.standby:
            told = (
                f"● ready: covers turns 1–{session.standby.covers_to}, a swap leaves {session.standby.tokens:,} tokens"
            )
            return label + Text(told + (" · next in work" if session.build else ""), "green")
        if session.build:
            return label + Text(f"● being built: turns 1–{session.build.covers_to}", "yellow")
        if session.degraded:
            return label + Text("○ asked for; until it is there, the oldest turns give way", "yellow")
        if session.tokens < session.soft_threshold_tokens:
            return label + Text(f"○ not needed before {session.soft_threshold_tokens:,} tokens", FAINT)
        return label + Text("○ asked for", "yellow")

    def _lower(self, lines: int) -> Table:
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(ratio=1)
        table.add_column(width=_SWAP_COLUMNS)
        table.add_row(self._conversation(lines), self._swap_log(lines))
        return table

    def _conversation(self, lines: int) -> Table:
        width = self.console.width - _SWAP_COLUMNS - 2 - 11
        table = Table.grid(padding=(0, 1))
        table.add_column(width=10, no_wrap=True)
        table.add_column(no_wrap=True)
        for speaker, gist in list(self._last)[-lines:]:
            style = _SPEAKER_STYLES.get(speaker, "")
            table.add_row(Text(clipped(speaker, 10), FAINT), Text(clipped(gist, width), style, overflow="ellipsis"))
        return table

    def _swap_log(self, lines: int) -> Group:
        shown = [Text("swap at  context        append", FAINT)]
        for swap in self.swaps[-(lines - 2) :]:
            took = f"{swap.append_ms:5.1f} ms" if swap.append_ms is not None else "between"
            shown.append(Text(f"turn {swap.turn:<3} {swap.tokens_before:>5,} → {swap.tokens_after:<5,} {took}"))
        median = percentile(self._append_ms, 0.5)
        return Group(*shown, Text(f"{'median of all appends':<23}{median:5.1f} ms", FAINT))


def _two_ends(left: Text, right: Text) -> Table:
    table = Table.grid(expand=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_row(left, right)
    return table
