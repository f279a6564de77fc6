"""Lines of arithmetic: each with its operands as they were, so that a reader can do it again by hand."""

from dataclasses import dataclass, field

__all__ = ["Line", "Sheet", "told"]


@dataclass(frozen=True, slots=True)
class Line:
    """One result."""

    part: str
    name: str
    arithmetic: str
    value: float
    unit: str


@dataclass(slots=True)
class Sheet:
    """The lines so far, and the part that new ones belong to."""

    lines: list[Line] = field(default_factory=list)
    part: str = ""

    def begin(self, part: str) -> None:
        """What follows belongs to ``part``."""
        self.part = part

    def note(self, name: str, value: float, unit: str, arithmetic: str) -> float:
        """Adds a line; its value."""
        self.lines.append(Line(self.part, name, arithmetic, value, unit))
        return value

    def value(self, part: str, name: str) -> float:
        """Of the line of that name. ``KeyError``: there is none."""
        for line in self.lines:
            if (line.part, line.name) == (part, name):
                return line.value
        raise KeyError(f"{part}: {name}")


def told(value: float) -> str:
    """A number for people: thousands apart, three figures where it is small."""
    if value == 0:
        return "0"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
