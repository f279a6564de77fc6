"""Cache breakpoints: up to where a provider shall keep a context in its prompt cache.

One rule for whoever sends a context, so that two requests agree byte for byte: the system prompt is one text block
with a breakpoint, and so is the last stored block of each of the two newest user messages. The first survives a swap,
the second is what the next request continues, the third finds the last request again when a turn has brought more
blocks than the provider looks back. A fourth is left to the sender, for its tools. What stands beside the newest turn
(profile, what was recalled for a query) follows the last breakpoint, because the next request will not have it.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

from prefold.conversation.encoding import orjson
from prefold.conversation.project import Fragment

__all__ = ["Ttl", "breakpoint_of", "marked", "system_blocks"]

Ttl = Literal["5m", "1h"]
"""How long the provider keeps what nobody reads again."""

_MARKED_MESSAGES = 2


def breakpoint_of(ttl: Ttl) -> Mapping[str, str]:
    """The value of ``cache_control``."""
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def system_blocks(system: str, ttl: Ttl) -> list[dict[str, Any]]:
    """The system prompt with its breakpoint; empty without one."""
    return [{"type": "text", "text": system, "cache_control": breakpoint_of(ttl)}] if system else []


def marked(fragments: Sequence[Fragment], ttl: Ttl) -> list[Fragment]:
    """The same fragments, with breakpoints on the two newest user messages."""
    result = list(fragments)
    for index in _last_of_user_messages(fragments)[-_MARKED_MESSAGES:]:
        result[index] = _with_breakpoint(result[index], ttl)
    return result


def _last_of_user_messages(fragments: Sequence[Fragment]) -> list[int]:
    """Of each message of the user, the index of the last fragment that is stored."""
    filled = [index for index, fragment in enumerate(fragments) if fragment.content]
    found = []
    for role, group in groupby(filled, key=lambda index: fragments[index].role):
        stored = [index for index in group if fragments[index].part != "beside"]
        if role == "user" and stored:
            found.append(stored[-1])
    return found


def _with_breakpoint(fragment: Fragment, ttl: Ttl) -> Fragment:
    # The content is the JSON of blocks, and a block is an object with members: it ends in its brace.
    control = b',"cache_control":' + orjson.dumps(breakpoint_of(ttl)) + b"}"
    return fragment._replace(content=fragment.content[:-1] + control)
