"""The state as a model reads it: whole, the same bytes for the same state, and nothing in it passes for a mark."""

import re
from collections.abc import Iterator
from typing import Final

from prefold.conversation.marks import closing, neutralise, opening
from prefold.pinned.state import PinnedState

__all__ = ["entry_lines", "one_line", "rendered"]

_TITLE: Final = "pinned state"
_BREAKS: Final = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f]")
_SPACES: Final = re.compile(r"\s+")


def rendered(state: PinnedState) -> str:
    """The text that stands in the system prompt; empty for an empty state."""
    lines = [line for _, line in entry_lines(state)]
    return "\n".join([opening(_TITLE), *lines, closing(_TITLE)]) if lines else ""


def entry_lines(state: PinnedState) -> Iterator[tuple[str, str]]:
    """Every entry's path and its lines, the heading of its section with the first entry."""
    if state.goal is not None:
        yield "goal", f"Goal: {_shown(state.goal)}"
    yield from _listed("constraints", "Constraints:", [_shown(one) for one in state.constraints])
    named = [f"{one_line(name)}: {_shown(value)}" for name, value in state.entities.items()]
    yield from zip([f"entities.{name}" for name in state.entities], _headed("Entities:", named), strict=True)
    yield from _listed("decisions", "Decisions:", [_shown(one) for one in state.decisions])
    yield from _listed("plan", "Plan:", [f"[{'x' if one.done else ' '}] {_shown(one.step)}" for one in state.plan])


def one_line(text: str) -> str:
    """The text on one line, with no mark in it."""
    return neutralise(_SPACES.sub(" ", _CONTROL.sub(" ", text)).strip())


def _listed(name: str, heading: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    yield from zip([f"{name}[{number}]" for number in range(len(texts))], _headed(heading, texts), strict=True)


def _headed(heading: str, texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"- {text}" if number else f"{heading}\n- {text}"


def _shown(text: str) -> str:
    """Its own lines are set in, so that none of them passes for another entry or heading."""
    return neutralise(_CONTROL.sub(" ", _BREAKS.sub("\n", text)).strip()).replace("\n", "\n    ")
