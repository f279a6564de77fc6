"""Every fixed text that Prefold itself writes into a context, with the bytes that the scripts join.

What a user writes is never compared with these: a look-alike in user text stays as it is.
"""

from typing import TYPE_CHECKING

from prefold.conversation.encoding import encode

if TYPE_CHECKING:
    from prefold.conversation.turns import ResultPart

FRAGMENT_TOKENS = 4
"""Raw tokens that a fragment costs beside its blocks."""
BLOCK_TOKENS = 3
"""Raw tokens that a block costs beside its content."""

TEXT_HEAD = b'{"type":"text","text":'
"""Before a JSON string; ``}`` follows."""
RESULT_HEAD = b'{"type":"tool_result","tool_use_id":"'
"""Before a call id; ``"``, attributes, ``,"content":``, the content and ``}`` follow."""

OPENER_TEXT = "[The assistant began this conversation.]"
NO_RESULT_TEXT = "[No result was recorded for this call.]"
EMPTY_RESULT_TEXT = "[empty result]"
SYSTEM_TEXT = "[System message:]"
REMOVED_TEXT = "[Prefold: this turn was removed.]"
"""Instead of the words of a removed turn. Begins as our marks do, so that no conversation passes for it."""
REMOVED_TOOL = "removed"
"""Instead of the name of a tool that a removed turn called."""
_LATE_TEXT = ("[Result of the earlier call ", ", which is no longer open:]")
_GAP_TEXT = ("[Prefold: turns ", " are left out here for lack of room; the session's log has them in full.]")

OPENER = TEXT_HEAD + encode(OPENER_TEXT) + b"}"
"""The block of the user message that stands before an assistant who spoke first."""
CLOSER_HEAD = RESULT_HEAD
"""Before the id of a call that got no result; ``CLOSER_TAIL`` follows."""
CLOSER_TAIL = b'","content":' + encode(NO_RESULT_TEXT) + b"}"
LATE_HEAD = TEXT_HEAD + encode(_LATE_TEXT[0])[:-1]
"""Before the id of a call that is no longer open; ``LATE_TAIL`` follows, then a comma and the result as plain blocks."""
LATE_TAIL = encode(_LATE_TEXT[1])[1:] + b"}"
GAP_HEAD = TEXT_HEAD + encode(_GAP_TEXT[0])[:-1]
"""Before ``first-last``, the range of turns left out; ``GAP_TAIL`` follows."""
GAP_TAIL = encode(_GAP_TEXT[1])[1:] + b"}"

OPENER_TOKENS = FRAGMENT_TOKENS + BLOCK_TOKENS + 7
"""Raw tokens of the opener's whole line."""
GAP_TOKENS = FRAGMENT_TOKENS + BLOCK_TOKENS + 36
"""The most raw tokens of a gap's whole line, for turn numbers of up to ten digits."""
CLOSER_TOKENS = BLOCK_TOKENS + 24
"""The most raw tokens of one closing block beside its id, which costs at most one a character."""
RENAME_TOKENS = 6
"""The most that a call id can grow when it gets a suffix of ``_`` and up to ten digits."""


def closer_block(call_id: str) -> bytes:
    """The result that stands for one that never came."""
    return CLOSER_HEAD + call_id.encode() + CLOSER_TAIL


def gap_block(first_seq: int, last_seq: int) -> bytes:
    """What stands for turns that were left out, both ends included."""
    return GAP_HEAD + f"{first_seq}-{last_seq}".encode() + GAP_TAIL


def result_block(part: "ResultPart", *, short: bool = False) -> bytes:
    """A result of a call that is open."""
    content = part.content if part.is_text else b"[" + part.content + b"]"
    if short and part.short is not None:
        content = part.short
    return RESULT_HEAD + part.call_id.encode() + b'"' + part.attributes + b',"content":' + content + b"}"


def late_result_blocks(part: "ResultPart", *, short: bool = False) -> bytes:
    """A result of a call that is no longer open: plain blocks, the first names the call."""
    content = TEXT_HEAD + part.content + b"}" if part.is_text else part.content
    if short and part.short is not None:
        content = TEXT_HEAD + part.short + b"}"
    return LATE_HEAD + part.call_id.encode() + LATE_TAIL + b"," + content


def late_result_text(call_id: str) -> str:
    """The text of the block before a late result."""
    return call_id.join(_LATE_TEXT)


def left_out_text(tokens: int) -> str:
    """What stands in a clipped text for the tokens that are gone."""
    return f"[… {tokens:,} tokens left out …]"


def system_note(text: str) -> str:
    """A system turn that does not lead, as user text."""
    return f"{SYSTEM_TEXT}\n{text}"


def image_placeholder(caption: str) -> str:
    """What stands for an image where it cannot be shown."""
    return f"[Image: {caption}]" if caption else "[Image]"


def document_placeholder(title: str) -> str:
    """What stands for a document where it cannot be shown."""
    return f"[Document: {title}]" if title else "[Document]"
