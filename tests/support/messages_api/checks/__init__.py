"""What makes a request wrong, in the order in which the API finds it."""

from typing import Any

from tests.support.messages_api.catalogue import Model
from tests.support.messages_api.checks.compacting import check_compacting
from tests.support.messages_api.checks.fields import check_fields
from tests.support.messages_api.checks.markers import check_markers
from tests.support.messages_api.checks.options import check_options
from tests.support.messages_api.checks.pairing import check_pairing
from tests.support.messages_api.checks.thinking import check_thinking
from tests.support.messages_api.checks.turns import check_turns
from tests.support.messages_api.checks.window import check_window
from tests.support.messages_api.prompt import Piece

__all__ = ["check_fields", "check_meaning", "check_window"]


def check_meaning(body: dict[str, Any], pieces: list[Piece], model: Model) -> None:
    """All that a well-formed request can still have wrong, but its size."""
    check_options(body, model)
    check_thinking(body, model)
    check_markers(body, pieces)
    check_compacting(body)
    check_turns(body, model)
    check_pairing(body["messages"])
