"""What a client did wrong, read from the journal."""

import hashlib
import re
from collections.abc import Callable, Iterable
from email.utils import parsedate_to_datetime

from tests.support.messages_api.journal import Entry

_NONCE = re.compile(rb"(?<![0-9A-Za-z])(?=[0-9a-f]*\d)[0-9a-f]{8,}(?![0-9A-Za-z])")
_NEVER_AGAIN = frozenset({400, 401, 402, 403, 404, 405, 413, 422})


def asked(entry: Entry) -> str:
    """The same for two calls that ask for the same: their bodies, but for nonces (hexadecimal words)."""
    return hashlib.blake2b(_NONCE.sub(b"", entry.body), digest_size=16).hexdigest()


def verdict(
    entries: Iterable[Entry], *, floor_seconds: float = 0.25, same: Callable[[Entry], str] = asked
) -> list[str]:
    """One sentence for each fault of the client, in order; none if it did well.

    It must not send again what was refused for good, wait at least as long as ``retry-after`` says, and no less than
    the floor after any other failure. ``same`` tells which calls are one and the same.
    """
    complaints: list[str] = []
    last: dict[str, Entry] = {}
    for entry in entries:
        if not entry.is_message:
            continue
        before = last.get(key := same(entry))
        if before is not None and before.ended is not None and before.has_failed:
            complaints += _of_pair(before, entry, floor_seconds)
        last[key] = entry
    return complaints


def _of_pair(before: Entry, entry: Entry, floor_seconds: float) -> list[str]:
    assert before.ended is not None
    pause = entry.arrived - before.ended
    which = f"request {entry.number} ({pause:.3f} s after request {before.number})"
    if before.status in _NEVER_AGAIN:
        return [f"{which} repeats what got a {before.status}"]
    wanted = wait_of(before)
    if wanted is not None and pause < wanted:
        return [f"{which} ignores retry-after: {wanted:g}"]
    if pause < floor_seconds:
        return [f"{which} comes faster than the floor of {floor_seconds:g} s"]
    return []


def wait_of(entry: Entry) -> float | None:
    """Seconds that the answer asked to wait; None if it did not, or in a form that cannot be read."""
    headers = entry.answer_headers
    if milliseconds := headers.get("retry-after-ms"):
        return float(milliseconds) / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        sent = headers.get("date")
        if sent is None:
            return None
        return (parsedate_to_datetime(value) - parsedate_to_datetime(sent)).total_seconds()
