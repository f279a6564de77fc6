"""The members that each part of a request may have: required ones first, then the optional ones.

A test compares these with the SDK's own types.
"""

from typing import NamedTuple


class Members(NamedTuple):
    required: frozenset[str]
    optional: frozenset[str]


def _members(required: str, optional: str = "") -> Members:
    return Members(frozenset(required.split()), frozenset(optional.split()))


REQUEST = _members(
    "model max_tokens messages",
    "cache_control container diagnostics inference_geo metadata output_config service_tier speed stop_sequences stream"
    " system thinking tool_choice tools",
)
COUNTED = _members("model messages", "cache_control output_config speed system thinking tool_choice tools")
"""Of ``count_tokens``."""
OF_BETAS = {
    "compaction": "compact-2026-09-04",
    "context_management": "context-management-2025-06-27",
    "thread": "message-threads-2026-08-12",
    "mcp_servers": "mcp-client",
    "fallbacks": "server-side-fallback",
}
"""Members that only the beta of this name (or beginning) brings."""
SAMPLING = ("temperature", "top_p", "top_k")
"""Gone since the version of 2026-10-21."""
BLOCKS = {
    "text": _members("type text", "cache_control citations"),
    "image": _members("type source", "cache_control transformations"),
    "document": _members("type source", "cache_control citations context title"),
    "search_result": _members("type content source title", "cache_control citations"),
    "thinking": _members("type thinking signature"),
    "redacted_thinking": _members("type data"),
    "tool_use": _members("type id name input", "cache_control caller toolset_name"),
    "tool_result": _members("type tool_use_id", "cache_control content is_error toolset_name"),
}
COMPACTION_BLOCK = _members("type content", "cache_control encrypted_content signature tool_changes")
SERVER_BLOCKS = frozenset(
    "server_tool_use web_search_tool_result web_fetch_tool_result code_execution_tool_result container_upload"
    " bash_code_execution_tool_result text_editor_code_execution_tool_result tool_search_tool_result browser_state"
    " mid_conv_system".split()
)
"""Blocks of server tools, which are let through as they are."""
TOOL = _members(
    "name input_schema",
    "type description cache_control strict defer_loading allowed_callers eager_input_streaming input_examples",
)
MESSAGE = _members("role content")
