"""Two drawings of a context's size: a gauge of the moment, and its saw-tooth over the turns."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.text import Text

HEAD = Style(color="blue")
BELOW_SOFT = Style(color="green")
ABOVE_SOFT = Style(color="yellow")
FAINT = Style(color="bright_black")

_EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Gauge:
    """One bar from 0 to the hard limit: the head, the window, what is free, and where the soft threshold stands."""

    tokens: int
    window_tokens: int
    soft_tokens: int
    hard_tokens: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The bar, and a line with both thresholds."""
        width = options.max_width
        head_end = self._column(self.tokens - self.window_tokens, width)
        end, soft = self._column(self.tokens, width), self._column(self.soft_tokens, width)
        style = ABOVE_SOFT if self.tokens >= self.soft_tokens else BELOW_SOFT
        bar = Text("█" * head_end, HEAD) + Text("█" * (end - head_end), style)
        free = "".join("┊" if column == soft else "░" for column in range(end, width))
        yield bar + Text(free, FAINT)
        yield self._scale(width, soft)

    def _scale(self, width: int, soft: int) -> Text:
        hard, label = f"hard {self.hard_tokens:,}", f"soft {self.soft_tokens:,}"
        room = width - len(hard) - 1
        if soft + 2 + len(label) <= room:
            line = " " * soft + f"┊ {label}"
        elif soft < room:
            line = f"{label} ┊".rjust(soft + 1)
        else:  # the threshold stands over the other label: no tick
            line = label.rjust(room)
        return Text(line + hard.rjust(width - len(line)), FAINT)

    def _column(self, tokens: int, width: int) -> int:
        return min(width, round(width * tokens / self.hard_tokens))


@dataclass(frozen=True, slots=True)
class SawTooth:
    """Tokens after each turn, from left to right over the whole width, with a mark under each swap."""

    tokens: Sequence[int]
    """After each turn so far."""
    swaps: Sequence[int]
    """Indexes into ``tokens``."""
    turns: int
    """Of the whole conversation."""
    soft_tokens: int
    hard_tokens: int
    rows: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The rows from the top down, then the marks."""
        width = options.max_width
        heights = [self._height(column, width) for column in range(width)]
        soft_row = self.rows * self.soft_tokens // self.hard_tokens
        for row in range(self.rows - 1, -1, -1):
            cells = (_EIGHTHS[max(0, min(8, height - 8 * row))] for height in heights)
            yield Text("".join(cells), ABOVE_SOFT if row >= soft_row else BELOW_SOFT)
        yield self._marks(width)

    def _height(self, column: int, width: int) -> int:
        """Eighths of a row: of the largest context in the column's turns, 0 where none has come yet."""
        first = column * self.turns // width
        last = max(first + 1, (column + 1) * self.turns // width)
        tokens = max(self.tokens[first:last], default=0)
        return tokens and max(1, round(8 * self.rows * tokens / self.hard_tokens))

    def _marks(self, width: int) -> Text:
        cells = ["─"] * (len(self.tokens) * width // self.turns)
        for number in self.swaps:
            column = number * width // self.turns
            cells[column : column + 1] = "▲"
        return Text("".join(cells).ljust(width), FAINT)
