"""What a PUT of a session may ask, checked; the same for whoever writes sessions."""

from typing import Annotated, Any, Literal

from prefold.conversation.encoding import encode
from prefold.conversation.ids import check_name
from prefold.conversation.shapes import msgspec
from prefold.errors import InvalidInputError
from prefold.storage.types import Proposals, SessionOptions
from prefold.tokens import TokenCounter

__all__ = ["NAME_PATTERN", "Name", "SessionBody", "SharedPrefix", "options_of"]

NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._@+=|~-]{0,127}$"
Name = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": NAME_PATTERN})]
"""Of a session or a user; it is checked apart, with a code of its own."""
_MOST_MODEL_CHARS = 256
_MOST_PREFIX_BYTES = 4096
_CALLING = ("any", "tool")


class SharedPrefix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the backend asks its model, so that summaries can be asked for on the same cached prefix.

    ``{}`` switches it off. The members beside ``enabled`` are those of the backend's requests that the provider's
    cache depends on: leave out what the backend leaves out.
    """

    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    cache: Literal["5m", "1h"] = "5m"
    """As the backend reads its contexts."""
    thinking: dict[str, Any] | None = None
    tool_choice: dict[str, Any] | None = None
    """One that forces a call is refused: no summary would come back."""
    output_config: dict[str, Any] | None = None
    """One with a ``format`` is refused: a summary is plain text."""


class SessionBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a PUT sets. A member that is absent stays as it is, or gets its default at creation."""

    user: Name | None = None
    """Set once; another user later is refused (409 ``user_conflict``)."""
    model: str | None = None
    hard_limit_tokens: Annotated[int, msgspec.Meta(ge=1000, le=10_000_000)] | None = None
    """Default 100,000."""
    soft_ratio: Annotated[float, msgspec.Meta(ge=0.4, le=0.85)] | msgspec.UnsetType | None = msgspec.UNSET
    """Share of the room at which the next summary is built. ``null``, the default: it adapts to pace and build time."""
    keep_recent_turns: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    """Default 6; the limit wins."""
    system: str | None = None
    tools: list[dict[str, Any]] | None = None
    metadata: dict[str, Any] | None = None
    shared_prefix: SharedPrefix | msgspec.UnsetType | None = msgspec.UNSET
    """``null`` or ``{}`` switches it off, which is the default."""
    close_after_seconds: Annotated[int, msgspec.Meta(ge=0, le=31_536_000)] | None = None
    """Idle time after which the session is closed. Default 1,800; 0: only by an explicit call."""
    state_cap_tokens: Annotated[int, msgspec.Meta(ge=0, le=10_000)] | None = None
    """Raw tokens that the pinned state may take. Default 250. A smaller one holds for the next write of the state."""
    proposals: Proposals | None = None
    """What becomes of entries of the pinned state that a worker proposes: with ``hold``, the default, they wait for the
    backend; with ``apply`` they also stand in contexts meanwhile, as marked user text."""


def options_of(body: SessionBody, counter: TokenCounter) -> SessionOptions:
    """What the storage takes, with the tokens that system and tools cost."""
    if body.model is not None and not (body.model.isprintable() and 0 < len(body.model) <= _MOST_MODEL_CHARS):
        raise InvalidInputError(f"must be 1 to {_MOST_MODEL_CHARS} printable characters", field="model")
    tools = None if body.tools is None else encode(body.tools).decode()
    system = "" if body.system is not None and not body.system.strip() else body.system  # no provider takes blanks
    return SessionOptions(
        user=None if body.user is None else check_name(body.user, "user"),
        model=body.model,
        hard_limit_tokens=body.hard_limit_tokens,
        soft_ratio=None if body.soft_ratio is msgspec.UNSET else body.soft_ratio,
        adaptive=body.soft_ratio is None,
        keep_recent_turns=body.keep_recent_turns,
        system=system,
        system_tokens=counter.count(system) if system else 0,
        tools=tools,
        tools_tokens=counter.count(tools) if tools else 0,
        metadata=None if body.metadata is None else encode(body.metadata).decode(),
        shared_prefix=None if body.shared_prefix is msgspec.UNSET else _prefix_json(body.shared_prefix),
        close_after_seconds=body.close_after_seconds,
        state_cap_tokens=body.state_cap_tokens,
        proposals=body.proposals,
    )


def _prefix_json(given: SharedPrefix | None) -> str:
    """What is stored. ``InvalidInputError`` for a setting under which no summary could come back."""
    if given is None or given == SharedPrefix():
        return "{}"
    if given.enabled is msgspec.UNSET:
        raise InvalidInputError(
            "say enabled: true or false, or give {} to switch it off", field="shared_prefix.enabled"
        )
    if given.tool_choice is not None:
        _check_tool_choice(given.tool_choice.get("type"))
    _check_thinking(given.thinking or {})
    if given.output_config is not None and given.output_config.get("format") is not None:
        detail = "a chat whose answers have a format cannot be asked for a summary, which is plain text"
        raise InvalidInputError(detail, field="shared_prefix.output_config.format")
    stored = msgspec.json.encode(given)
    if len(stored) > _MOST_PREFIX_BYTES:
        raise InvalidInputError(f"more than {_MOST_PREFIX_BYTES} bytes as JSON", field="shared_prefix")
    return stored.decode()


def _check_tool_choice(kind: object) -> None:
    if kind in _CALLING:
        detail = "a chat that is made to call a tool cannot be asked for a summary: it would call the tool"
        raise InvalidInputError(detail, field="shared_prefix.tool_choice")
    if kind not in ("auto", "none"):
        raise InvalidInputError("must be auto or none", field="shared_prefix.tool_choice.type")


def _check_thinking(thinking: dict[str, Any]) -> None:
    tokens = thinking.get("budget_tokens", 1)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        raise InvalidInputError("must be a whole number of tokens", field="shared_prefix.thinking.budget_tokens")
