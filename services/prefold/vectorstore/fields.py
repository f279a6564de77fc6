"""Reading JSON objects strictly: every member is taken once and checked, and what nobody took is refused.

A member that is silently ignored could be a filter, and with it the border between tenants.
"""

from collections.abc import Iterable
from typing import Final

from prefold.vectorstore.rejections import malformed, unsupported

MAX_DEPTH: Final = 32
"""Deepest nesting of a payload or a filter. From about 124 on, qdrant-edge 0.9 acknowledges an update that it
cannot read back from its log, and the shard never loads again."""


class Fields:
    """The members of one JSON object. ``path`` says in errors where it stands."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise malformed(path, "expected an object")
        self._members: dict[str, object] = dict(value)
        self.path = path

    def __contains__(self, name: str) -> bool:
        return self._members.get(name) is not None

    def at(self, name: str) -> str:
        """The path of a member."""
        return f"{self.path}.{name}" if self.path else name

    def take(self, name: str) -> object:
        """The member's value, unchecked; None where it is missing or null."""
        return self._members.pop(name, None)

    def drop(self, *names: str) -> None:
        """Ignores members that only tune a server."""
        for name in names:
            self._members.pop(name, None)

    def done(self) -> None:
        """Refuses what nobody took. Nulls are as good as missing."""
        for name, value in self._members.items():
            if value is not None:
                raise unsupported(self.path or "body", f"the member {name!r} here")

    def text(self, name: str) -> str:
        """A string that must be there."""
        value = self.take(name)
        if not isinstance(value, str):
            raise malformed(self.at(name), "expected a string")
        return value

    def optional_text(self, name: str) -> str | None:
        """A string, or None."""
        return self.text(name) if name in self else None

    def flag(self, name: str, default: bool) -> bool:
        """A boolean."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise malformed(self.at(name), "expected true or false")
        return value

    def optional_flag(self, name: str) -> bool | None:
        """A boolean, or None."""
        return self.flag(name, False) if name in self else None

    def integer(self, name: str, default: int | None, low: int, high: int) -> int:
        """An integer within the bounds; it must be there if ``default`` is None."""
        value = self.take(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise malformed(self.at(name), f"expected an integer from {low} to {high}")
        return value

    def optional_number(self, name: str) -> float | None:
        """A number, or None."""
        value = self.take(name)
        if value is None:
            return None
        return number(value, self.at(name))

    def items(self, name: str) -> list[object]:
        """An array that must be there."""
        return array(self.take(name), self.at(name))


def number(value: object, path: str) -> float:
    """A JSON number as float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed(path, "expected a number")
    return float(value)


def array(value: object, path: str) -> list[object]:
    """A JSON array."""
    if not isinstance(value, list):
        raise malformed(path, "expected an array")
    return value


def texts(value: object, path: str) -> list[str]:
    """A JSON array of strings."""
    items = array(value, path)
    if not all(isinstance(item, str) for item in items):
        raise malformed(path, "expected strings")
    return [str(item) for item in items]


def check_depth(value: object, path: str, allowed: int = MAX_DEPTH) -> None:
    """Refuses a value that nests deeper than ``allowed``. Flat ones cost next to nothing."""
    inner: Iterable[object]
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    else:
        return
    if allowed == 0:
        raise malformed(path, f"nested deeper than {MAX_DEPTH}")
    for item in inner:
        if isinstance(item, dict | list):
            check_depth(item, path, allowed - 1)
