"""Shared-prefix mode: the request for a summary is the chat's own last request with one message more.

The provider has just cached what the chat sent: tools, system and messages up to the newest user message that was
answered. Sent again byte for byte, with the same breakpoints and the same settings, that is read from the cache at a
tenth of its price. ``prefix_request`` makes the same bytes out of the same stored lines as ``GET …/context?cache=``
does (``assembly.breakpoints`` has the rule for both), or says why the chat's last request cannot be known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import takewhile
from typing import Any, Literal

import msgspec

from prefold.assembly import system_of
from prefold.assembly.breakpoints import Ttl, marked, system_blocks
from prefold.conversation.project import Fragment, anthropic_messages, parse_lines
from prefold.conversation.turns import TurnKind
from prefold.storage.types import SessionView, StoredContext, StoredTurn

__all__ = ["PrefixReason", "PrefixRequest", "PrefixSetting", "prefix_request", "setting_of", "words_of"]

PrefixReason = Literal[
    "off",
    "model_not_registered",
    "thinks_too_long",
    "changed",
    "degraded",
    "cache_expired",
    "nothing_sent",
    "not_verbatim",
]
"""Why the chat's prefix is not used. ``changed``: model, system, tools or turns did, and as far as is known the chat has
not asked since.
``nothing_sent``: no user message has an answer yet. ``not_verbatim``: a turn of the range is not whole in the window."""

MOST_THINKING_TOKENS = 15_000
"""With an answer beside it no more comes in one piece: what is longer has to be streamed."""
_TTLS = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
_SURE_SHARE = 0.8
"""Of the cache's time: the chat's request, from which it runs, came before the turn that we know the time of."""


class PrefixSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A session's ``shared_prefix``, as the gateway has checked it."""

    enabled: bool = False
    cache: Ttl = "5m"
    thinking: dict[str, Any] | None = None
    tool_choice: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None

    @property
    def members(self) -> dict[str, Any]:
        """What of it stands in a request."""
        given = {"thinking": self.thinking, "tool_choice": self.tool_choice, "output_config": self.output_config}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def thinking_tokens(self) -> int | None:
        """So many at most the model thinks before it answers; None: that is no number of tokens."""
        given = (self.thinking or {}).get("budget_tokens", 0)
        return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None


@dataclass(frozen=True, slots=True)
class PrefixRequest:
    """What the chat sent last, and what has come since as far as it is to be summarised. The instruction is to follow."""

    model: str
    system: list[dict[str, Any]]
    """Empty: the session has none."""
    tools: list[dict[str, Any]] | None
    """None: none were registered."""
    messages: list[dict[str, Any]]
    shared_messages: int
    """So many of ``messages`` the chat has sent."""
    tokens: int
    """Raw, of all of it."""
    thinking_tokens: int = 0
    """Most that the model thinks before it answers."""
    members: dict[str, Any] = field(default_factory=dict)
    """Further members of the request, as the chat sends them."""


def setting_of(view: SessionView) -> PrefixSetting:
    """The session's setting; disabled when there is none."""
    return msgspec.json.decode(view.shared_prefix or "{}", type=PrefixSetting)


def prefix_request(
    context: StoredContext,
    view: SessionView,
    turns: Sequence[StoredTurn],
    *,
    now_ms: int,
    same_since: int | None = None,
) -> PrefixRequest | PrefixReason:
    """The chat's last request, for a summary of ``turns``, or why there is none to be shared.

    ``context`` and ``view`` are of one session, read one after the other; ``turns`` are whole and end at a cut.
    ``same_since``: newest turn when the context was seen in its present version for the first time; None: not before.
    """
    setting = setting_of(view)
    reason = _refused(context, view, setting, now_ms)
    if reason is not None:
        return reason
    _, fragments = parse_lines(context.body)
    filled = [fragment for fragment in fragments if fragment.content]
    shared = _sent_last(filled)
    if shared is None:
        return "nothing_sent"
    if context.version != context.asked_version and (same_since is None or filled[shared].seq <= same_since):
        return "changed"
    if not _stand_verbatim(turns, filled):
        return "not_verbatim"
    later = _up_to(turns[-1].seq, filled[shared + 1 :])
    system, system_tokens = system_of(context)
    sent = marked(filled[: shared + 1], setting.cache)
    return PrefixRequest(
        model=view.model,
        system=system_blocks(system, setting.cache),
        tools=msgspec.json.decode(view.tools) if view.tools else None,
        messages=anthropic_messages([*sent, *later]),
        shared_messages=len(anthropic_messages(sent)),
        tokens=system_tokens + context.tools_tokens + sum(one.tokens for one in (*sent, *later)),
        thinking_tokens=setting.thinking_tokens or 0,
        members=setting.members,
    )


def _refused(context: StoredContext, view: SessionView, setting: PrefixSetting, now_ms: int) -> PrefixReason | None:
    if not setting.enabled:
        return "off"
    if not view.model:
        return "model_not_registered"
    if setting.thinking_tokens is None or setting.thinking_tokens > MOST_THINKING_TOKENS:
        return "thinks_too_long"
    if view.ref != context.ref or view.version != context.version:
        return "changed"
    if context.degraded:
        return "degraded"
    sure_ms = _TTLS[setting.cache].total_seconds() * 1000 * _SURE_SHARE
    return "cache_expired" if now_ms - view.updated_at_ms > sure_ms else None


def _sent_last(filled: Sequence[Fragment]) -> int | None:
    """Index of the last fragment that an assistant's answer follows: what a chat calls its model with."""
    for index in range(len(filled) - 2, -1, -1):
        if filled[index].role == "user" and filled[index + 1].role == "assistant":
            return index
    return None


def _up_to(last_seq: int, fragments: Sequence[Fragment]) -> list[Fragment]:
    """The fragments of turns up to ``last_seq``, and what closes their calls, which bears the number of the next turn."""
    return list(takewhile(lambda one: one.seq <= last_seq or one.part == "closer", fragments))


def _stand_verbatim(turns: Sequence[StoredTurn], filled: Sequence[Fragment]) -> bool:
    whole = {fragment.seq for fragment in filled if not fragment.part}
    # A system turn that leads stands in the system prompt.
    needed = {turn.seq for turn in turns if turn.content and turn.kind != TurnKind.SYSTEM}
    return bool(needed) and needed <= whole


def words_of(turn: StoredTurn) -> str:
    """What tells a turn from others: its first words, or which tool it is about."""
    blocks: list[dict[str, Any]] = msgspec.json.decode(b"[" + turn.content + b"]")
    return next((said for block in blocks if (said := _words(block))), "")


def _words(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block["text"]).strip()
        case "tool_use":
            return str(block["name"])
        case "tool_result" if isinstance(block.get("content"), str):
            return str(block["content"]).strip()
        case "tool_result":
            return next((said for part in block.get("content") or () if (said := _words(part))), "")
    return ""
