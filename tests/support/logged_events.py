"""The names of events in the source: the first argument of every call that logs."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "exception"})
_LOGGERS = frozenset({"log", "_log", "logger"})


class NamelessEventError(AssertionError):
    """An event whose name cannot be read off the source."""


def events_in(source: str, where: str = "") -> Iterator[str]:
    """Names of the events that ``source`` logs; both of a choice. Raises ``NamelessEventError`` for a built name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args and _logs(node.func):
            yield from _names(node.args[0], f"{where}:{node.lineno}")


def events_of_the_source() -> dict[str, str]:
    """Every event that our processes log, and one file that does."""
    found = {}
    for root in ("services", "workers", "shared"):
        for path in sorted((ROOT / root).rglob("*.py")):
            found.update(dict.fromkeys(events_in(path.read_text(), str(path)), str(path.relative_to(ROOT))))
    return found


def _logs(func: ast.expr) -> bool:
    if isinstance(func, ast.Name):
        return func.id == "level"  # `level = log.warning if … else log.info`
    if not isinstance(func, ast.Attribute) or func.attr not in LEVELS:
        return False
    return isinstance(func.value, ast.Name) and func.value.id in _LOGGERS


def _names(argument: ast.expr, where: str) -> Iterator[str]:
    if isinstance(argument, ast.IfExp):
        yield from (*_names(argument.body, where), *_names(argument.orelse, where))
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    else:
        raise NamelessEventError(f"{where}: the name of an event is a literal")
