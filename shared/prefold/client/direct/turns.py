"""Turns of Python as a gateway would read them from JSON, prepared for the append script."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from prefold.client.calls import json_body
from prefold.conversation.accepting import new_id, prepare_body
from prefold.conversation.prepare import prepare_turn
from prefold.conversation.strict_json import is_storable
from prefold.conversation.turns import PreparedTurn
from prefold.tokens import TokenCounter

__all__ = ["Limits", "prepared"]

_SURELY_SMALL_CHARS: Final = 65_536
"""Of a turn: its JSON is smaller than any limit whatever the characters are."""
_SURELY_FEW: Final = 10
_SAID: Final = {"id", "role", "content"}


class Limits:
    """What one append may bring: a gateway's own default limits."""

    turn_max_bytes = 1_048_576
    request_max_bytes = 4_194_304
    turns_per_request = 100
    calls_per_request = 1_024


_LIMITS: Final = Limits()


def prepared(turns: Sequence[Mapping[str, Any]], counter: TokenCounter) -> list[PreparedTurn]:
    """The same bytes, and the same refusals, as over HTTP. Words and nothing else are not sent through JSON first."""
    if len(turns) <= _SURELY_FEW and all(map(_is_plain, turns)):
        return [prepare_turn(turn, number, counter, new_id) for number, turn in enumerate(turns)]
    return prepare_body(json_body({"turns": turns}), counter, _LIMITS)


def _is_plain(turn: Mapping[str, Any]) -> bool:
    """Whether all of it is short strings that JSON gives back as they are."""
    if not turn.keys() <= _SAID:
        return False
    for value in turn.values():
        if type(value) is not str or len(value) > _SURELY_SMALL_CHARS or not is_storable(value):
            return False
    return True
