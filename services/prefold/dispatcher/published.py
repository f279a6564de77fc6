"""An entry of an ingest stream read as a turn, by the rules that hold for a turn over HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass

from prefold.conversation.accepting import TurnLimits, prepare_published
from prefold.conversation.ids import check_name
from prefold.conversation.turns import PreparedTurn
from prefold.errors import InvalidInputError, RefusedError, TooLargeError
from prefold.storage.ingest import IngestEntry
from prefold.tokens import TokenCounter

__all__ = ["ENTRY_OVERHEAD_BYTES", "Published", "keeps_text", "read_entry", "session_of_entry"]

ENTRY_OVERHEAD_BYTES = 1_024
"""What an entry has beside its turn, at most."""
_VERSION = b"1"
_FIELDS = (b"session", b"turn", b"v")
_MOST_KEPT_BYTES = 8 * 1024 * 1024
"""A larger entry leaves only the reason."""
_SHOWN_CHARS = 60
_OF_REMOVED = {"session_erased", "turn_removed", "turn_rewound", "field_twice"}
"""Reasons that speak of words which somebody took away, or of more than one session: such an entry is not kept."""


@dataclass(frozen=True, slots=True)
class Published:
    """A turn that was published, ready to be stored."""

    entry: IngestEntry
    session: str
    turn: PreparedTurn


def read_entry(entry: IngestEntry, counter: TokenCounter, limits: TurnLimits) -> Published:
    """The turn of an entry. Raises ``RefusedError`` for what no retry makes better."""
    if not entry.fields and entry.size_bytes:
        raise TooLargeError(f"the turn is larger than {limits.turn_max_bytes} bytes", field="turn")
    fields = _fields(entry)
    if fields[b"v"] != _VERSION:
        raise InvalidInputError("this version of the entry's form is not known", code="unknown_version", field="v")
    session = check_name(fields[b"session"].decode("utf-8", "replace"), "session")
    try:
        return Published(entry, session, prepare_published(fields[b"turn"], counter, limits))
    except RefusedError as error:
        if error.field == "body":  # as it is called over HTTP
            error.field = "turn"
        raise


def session_of_entry(entry: IngestEntry) -> str:
    """The session that a bad entry is for, or empty: what no session can have as its name names none."""
    try:
        return check_name(entry.session.decode("utf-8", "replace"), "session")
    except InvalidInputError:
        return ""


def keeps_text(entry: IngestEntry, error: RefusedError) -> bool:
    """Whether its dead letter keeps the entry."""
    return entry.size_bytes <= _MOST_KEPT_BYTES and error.code not in _OF_REMOVED


def _fields(entry: IngestEntry) -> Mapping[bytes, bytes]:
    fields = dict(entry.fields)
    if len(fields) != len(entry.fields):  # first: such an entry may be of two sessions, and is not kept
        raise InvalidInputError("a field stands twice in one entry", code="field_twice", field="")
    for name in fields:
        if name not in _FIELDS:
            raise InvalidInputError("an entry has no such field", code="unknown_field", field=_shown(name))
    for name in _FIELDS:
        if name not in fields:
            raise InvalidInputError("the entry lacks a field", code="field_missing", field=_shown(name))
    return fields


def _shown(name: bytes) -> str:
    return name[:_SHOWN_CHARS].decode("utf-8", "replace")
