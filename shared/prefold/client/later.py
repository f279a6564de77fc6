"""Modules that are imported when something of them is first used: a backend that starts does not wait for them."""

from importlib import import_module
from typing import Any, NamedTuple


class Later(NamedTuple):
    """Stands for a module."""

    module: str

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.module), name)
