"""A published turn taken apart for the log, and given back as it was."""

from collections.abc import Mapping
from typing import Any, Literal

from prefold.conversation.encoding import encode
from prefold.conversation.markers import TEXT_HEAD

Verbatim = Literal["text", "blocks", "whole"]


def make_envelope(raw: Mapping[str, Any], turn_id: str, verbatim: Verbatim) -> bytes:
    """What is stored beside the content: see ``PreparedTurn.envelope``. The id is ``turn_id``, first where it is new."""
    members = {**raw, "id": turn_id} if "id" in raw else {"id": turn_id, **raw}
    if verbatim != "whole" and next(reversed(members)) == "content":  # where most producers put it
        del members["content"]
        return encode(members)
    if verbatim == "whole":
        return encode(members)
    names = list(members)
    at = names.index("content")
    before = encode({name: members[name] for name in names[:at]})
    after = names[at + 1 :]
    return before + b"\n" + encode({name: members[name] for name in after}) if after else before


def restore_turn(envelope: bytes, verbatim: str, content: bytes, seq: int) -> bytes:
    """The turn as it was published (with the id that it got and U+FFFD for what JSON cannot hold), ``seq`` first.

    Equal as a JSON value, keys in their order; white space and escapes are ours.
    """
    number = b'{"seq":%d' % seq
    if verbatim == "whole":
        return number + b"," + envelope[1:]
    before, _, after = envelope.partition(b"\n")
    value = content[len(TEXT_HEAD) : -1] if verbatim == "text" else b"[" + content + b"]"
    members = [number, before[1:-1], b'"content":' + value, after[1:-1]]
    return b",".join(member for member in members if member) + b"}"
