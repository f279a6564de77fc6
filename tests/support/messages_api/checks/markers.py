"""Where ``cache_control`` may stand, how often, and in which order its lifetimes."""

from collections.abc import Iterator
from typing import Any

from tests.support.messages_api.errors import invalid
from tests.support.messages_api.prompt import Piece, blocks_of, can_be_marked

MOST_MARKERS = 4


def check_markers(body: dict[str, Any], pieces: list[Piece]) -> None:
    """Raises 400. A marker on thinking is told of as an unknown member, before this."""
    marked = list(_marked(body))
    automatic = body.get("cache_control")
    for path, block in marked:
        _check_form(block["cache_control"], f"{path}.cache_control")
        if not can_be_marked(block):
            raise invalid(f"{path}.text: cache_control cannot be set for empty text blocks")
    if automatic is not None:
        _check_form(automatic, "cache_control")
    count = len(marked) + (automatic is not None)
    if count > MOST_MARKERS:
        raise invalid(f"A maximum of {MOST_MARKERS} blocks with cache_control may be provided. Found {count}.")
    _check_order(marked)
    if automatic is not None:
        _check_automatic(automatic, pieces)


def ttl_of(marker: dict[str, Any]) -> str:
    return str(marker.get("ttl") or "5m")


def _marked(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, tool in enumerate(body.get("tools") or ()):
        if tool.get("cache_control"):
            yield f"tools.{index}", tool
    for index, block in enumerate(blocks_of(body.get("system"))):
        if block.get("cache_control"):
            yield f"system.{index}", block
    for index, message in enumerate(body["messages"]):
        for at, block in enumerate(blocks_of(message["content"])):
            if block.get("cache_control"):
                yield f"messages.{index}.content.{at}", block
            if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                inner = enumerate(block["content"])
                yield from (
                    (f"messages.{index}.content.{at}.{n}", part) for n, part in inner if part.get("cache_control")
                )


def _check_form(marker: Any, path: str) -> None:
    if not isinstance(marker, dict) or marker.get("type") != "ephemeral":
        raise invalid(f"{path}.type: Input should be 'ephemeral'")
    if ttl_of(marker) not in {"5m", "1h"}:
        raise invalid(f"{path}.ttl: Input should be '5m' or '1h'")
    for name in marker.keys() - {"type", "ttl", "scope"}:
        raise invalid(f"{path}.{name}: Extra inputs are not permitted")


def _check_order(marked: list[tuple[str, dict[str, Any]]]) -> None:
    has_short = False
    for path, block in marked:
        ttl = ttl_of(block["cache_control"])
        if ttl == "1h" and has_short:
            raise invalid(
                f"{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control"
                " block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
        has_short = has_short or ttl == "5m"


def _check_automatic(automatic: dict[str, Any], pieces: list[Piece]) -> None:
    last = next((piece for piece in reversed(pieces) if can_be_marked(piece.block)), None)
    # The row's own marker, not the one that the automatic one put there.
    own = last.block.get("cache_control") if last is not None else None
    if own and ttl_of(own) != ttl_of(automatic):
        raise invalid(
            f"Top-level cache_control has ttl='{ttl_of(automatic)}' but the target block already has cache_control"
            f" with ttl='{ttl_of(own)}'"
        )
