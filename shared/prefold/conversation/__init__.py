"""Conversations: turns checked, counted and projected, contexts read for a provider and checked."""

from prefold.conversation.check import check_anthropic
from prefold.conversation.check_openai import check_openai
from prefold.conversation.ids import check_name, check_turn_id
from prefold.conversation.openai_form import openai_messages
from prefold.conversation.prepare import digest_of, prepare_turn
from prefold.conversation.project import Fragment, anthropic_messages, anthropic_messages_json, parse_lines
from prefold.conversation.redacted import redacted_turn
from prefold.conversation.strict_json import parse_json, parse_json_text
from prefold.conversation.turns import PreparedTurn, ResultPart, Role, TurnKind
from prefold.conversation.verbatim import restore_turn

__all__ = [
    "Fragment",
    "PreparedTurn",
    "ResultPart",
    "Role",
    "TurnKind",
    "anthropic_messages",
    "anthropic_messages_json",
    "check_anthropic",
    "check_name",
    "check_openai",
    "check_turn_id",
    "digest_of",
    "openai_messages",
    "parse_json",
    "parse_json_text",
    "parse_lines",
    "prepare_turn",
    "redacted_turn",
    "restore_turn",
]
