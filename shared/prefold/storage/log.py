"""Entries of the verbatim log."""

from collections.abc import Mapping
from typing import Literal, cast

from prefold.conversation.verbatim import restore_turn
from prefold.storage.types import StoredTurn

__all__ = ["stored_turn"]

_VERBATIM = {"t": "text", "b": "blocks", "w": "whole"}


def stored_turn(entry_id: bytes, fields: Mapping[bytes, bytes]) -> StoredTurn:
    """One entry.

    Its field ``r``: a line with tokens, short tokens, running total, closer's tokens, cut, kind, role, verbatim mode,
    revision and the producer's id, then the envelope. ``c``: the blocks; ``s``: their short form; ``k``: the closer;
    ``d``: the turn was removed.
    """
    record, envelope = fields[b"r"].split(b"\n", 1)
    tokens, short_tokens, _, _, cut, kind, role, verbatim, revision, turn_id = record.decode().split(" ", 9)
    seq = int(entry_id.split(b"-", 1)[0])
    content = fields[b"c"]
    mode = cast("Literal['text', 'blocks', 'whole']", _VERBATIM[verbatim])
    return StoredTurn(
        seq=seq,
        id=turn_id,
        role="user" if role == "u" else "assistant",
        kind=kind,
        content=content,
        short=fields.get(b"s", b""),
        tokens=int(tokens),
        short_tokens=int(short_tokens),
        is_cut=cut != "0",
        revision=int(revision),
        removed=b"d" in fields,
        verbatim_json=restore_turn(envelope, mode, content, seq),
    )
