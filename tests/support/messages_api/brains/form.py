"""The form that a summary is asked for in."""

from collections.abc import Mapping, Sequence

from tests.support.messages_api.brains.reading import SECTIONS


def written(lines: Mapping[str, Sequence[str]], opening: str = "<summary>", closing: str = "</summary>") -> str:
    """Sections in their order, those without a line left out."""
    parts = [opening]
    for key in SECTIONS:
        if lines.get(key):
            parts += [f"## {key}", *(f"- {line}" for line in lines[key])]
    return "\n".join([*parts, closing])
