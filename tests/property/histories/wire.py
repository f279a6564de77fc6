"""What may happen between a caller and the server: every script call of the process passes here."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from prefold.errors import UnavailableError
from prefold.storage.scripts import Script, ScriptClient


@dataclass(frozen=True)
class Trouble:
    """For one script call among those to come."""

    after_calls: int
    """So many calls pass first."""
    how: Literal["request lost", "reply lost", "between"]
    """The script never runs; it runs and nobody hears of it; something else happens right before it."""
    act: Callable[[], Awaitable[None]] | None = None


CONFIRMS_FORK = "fork_log confirm"
"""What comes before this call of a fork comes after the fork: its last look at its source is behind it."""


class Wire:
    """Sound, until ``arm`` says that something is about to happen. Once it has, the wire is sound again."""

    def __init__(self) -> None:
        self._trouble: Trouble | None = None
        self.happened = False
        """Since the last ``arm``."""
        self.passed = 0
        """Calls that passed between the last ``arm`` and what then happened."""
        self.interrupted = ""
        """The script call that something came before, and what that call was asked to do."""

    def arm(self, trouble: Trouble) -> None:
        self._trouble, self.happened, self.passed = trouble, False, trouble.after_calls

    def disarm(self) -> None:
        self._trouble, self.happened, self.passed, self.interrupted = None, False, 0, ""

    @property
    def is_armed(self) -> bool:
        return self._trouble is not None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Every ``Script.run`` of the process goes through this wire meanwhile."""
        original = Script.run

        async def run(script: Script, client: ScriptClient, keys: Sequence[str], args: Sequence[Any]) -> Any:
            how = await self._before(f"{script.name} {args[2] if len(args) > 2 else ''}")
            if how == "request lost":
                raise UnavailableError("the request was lost")
            reply = await original(script, client, keys, args)
            if how == "reply lost":
                raise UnavailableError("the reply was lost")
            return reply

        Script.run = run  # type: ignore[method-assign,assignment]
        try:
            yield
        finally:
            Script.run = original  # type: ignore[method-assign]

    async def _before(self, call: str) -> str:
        trouble = self._trouble
        if trouble is None:
            return ""
        if trouble.after_calls:
            self._trouble = Trouble(trouble.after_calls - 1, trouble.how, trouble.act)
            return ""
        self._trouble, self.happened = None, True
        if trouble.act is not None:
            self.interrupted = call
            await trouble.act()
        return trouble.how
