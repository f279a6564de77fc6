"""The pinned state itself: a small structured object that a backend keeps, and how a patch changes it."""

from typing import Annotated, Any, Final

from prefold.conversation.shapes import msgspec

__all__ = [
    "MOST_BODY_BYTES",
    "NO_STATE",
    "EntityName",
    "PinnedState",
    "PinnedText",
    "PlanStep",
    "document_of",
    "merged",
]

MOST_BODY_BYTES: Final = 262_144
"""Of a state as JSON."""

_MOST_CHARS: Final = 4_000
_MOST_ENTRIES: Final = 200
_MOST_NAME_CHARS: Final = 200

PinnedText = Annotated[str, msgspec.Meta(min_length=1, max_length=_MOST_CHARS, pattern=r"\S")]
EntityName = Annotated[str, msgspec.Meta(min_length=1, max_length=_MOST_NAME_CHARS, pattern=r"\S")]
_Listed = Annotated[tuple[PinnedText, ...], msgspec.Meta(max_length=_MOST_ENTRIES)]


class PlanStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of the plan."""

    step: PinnedText
    done: bool = False


class PinnedState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What every context of the session shows whole, in the words of the backend."""

    goal: PinnedText | None = None
    constraints: _Listed = ()
    entities: Annotated[dict[EntityName, PinnedText], msgspec.Meta(max_length=_MOST_ENTRIES)] = {}  # noqa: RUF012  # msgspec copies it
    decisions: _Listed = ()
    plan: Annotated[tuple[PlanStep, ...], msgspec.Meta(max_length=_MOST_ENTRIES)] = ()


NO_STATE: Final = PinnedState()


def document_of(state: PinnedState) -> dict[str, Any]:
    """The state as a JSON object, without what it does not have."""
    document: dict[str, Any] = msgspec.to_builtins(state)
    return document


def merged(state: PinnedState, patch: dict[str, Any]) -> dict[str, Any]:
    """The document that a merge patch (RFC 7396) makes of the state; ``null`` removes. It is not checked yet."""
    document: dict[str, Any] = _merged(document_of(state), patch)
    return document


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result: dict[str, Any] = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result
