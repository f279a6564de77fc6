"""What a state costs, and the refusal of one that costs too much."""

from typing import Final

from prefold.errors import InvalidInputError
from prefold.pinned.rendering import entry_lines, rendered
from prefold.pinned.state import PinnedState
from prefold.tokens import TokenCounter

__all__ = ["StateTooLongError", "checked", "tokens_of"]

_JOINT_TOKENS: Final = 2
"""What it may cost to set the text after the system prompt."""
_SHOWN_ENTRIES: Final = 8


class StateTooLongError(InvalidInputError):
    """The state is over its cap; ``entries`` has what each entry takes, the longest first."""

    def __init__(self, tokens: int, cap_tokens: int, entries: list[tuple[str, int]]) -> None:
        longest = ", ".join(f"{path[:60]} ({cost})" for path, cost in entries[:_SHOWN_ENTRIES])
        more = f" and {len(entries) - _SHOWN_ENTRIES} more" if len(entries) > _SHOWN_ENTRIES else ""
        detail = f"the state takes {tokens} tokens and may take {cap_tokens}: {longest}{more}"
        super().__init__(detail, code="state_too_long", field=entries[0][0] if entries else "body")
        self.tokens = tokens
        self.cap_tokens = cap_tokens
        self.entries = entries
        self.members = {
            "tokens": tokens,
            "cap_tokens": cap_tokens,
            "entries": [{"entry": path, "tokens": cost} for path, cost in entries],
        }


def tokens_of(text: str, counter: TokenCounter) -> int:
    """Raw tokens of a rendered state, with what it takes to join it to a system prompt; 0 for none."""
    return counter.count(text) + _JOINT_TOKENS if text else 0


def checked(state: PinnedState, counter: TokenCounter, cap_tokens: int) -> int:
    """Raw tokens that the state takes. Raises ``StateTooLongError`` (state_too_long) above the cap; nothing is cut."""
    tokens = tokens_of(rendered(state), counter)
    if tokens > cap_tokens:
        entries = [(path, counter.count(line)) for path, line in entry_lines(state)]
        raise StateTooLongError(tokens, cap_tokens, sorted(entries, key=lambda one: (-one[1], one[0])))
    return tokens
