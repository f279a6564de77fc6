"""One line of the audit log, and how a file of them is read."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, get_args

AuditAction = Literal[
    "key_created",
    "key_rotated",
    "key_revoked",
    "session_erased",
    "user_erased",
    "turn_removed",
    "fact_deleted",
    "dead_letter_replayed",
    "dead_letter_erased",
    "backup_taken",
    "erasures_reapplied",
]
ACTIONS: Final[tuple[AuditAction, ...]] = get_args(AuditAction)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who changed what, in ids: no entry ever holds a word of a conversation, nor a key."""

    at: str
    """Wall clock, ISO 8601 in UTC to the millisecond."""
    action: AuditAction
    tenant: str
    key_id: str = ""
    """Of the API key it was done with; empty on the command line, and without keys."""
    role: str = ""
    """The process or command that did it."""
    subject: Mapping[str, str] = field(default_factory=dict)
    """What it was done to, by kind: ``session``, ``incarnation``, ``user``, ``turn`` (the producer's id), ``fact``, ``key``…"""

    def line(self) -> bytes:
        """The entry as JSON with a line feed. ASCII, so that no reader meets a broken character."""
        known = {
            "at": self.at,
            "action": self.action,
            "tenant": self.tenant,
            "key_id": self.key_id,
            "role": self.role,
            "subject": dict(self.subject),
        }
        return json.dumps(known, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line that is no entry: a write that a crash cut off, or somebody's hand."""

    number: int


def read_audit(path: Path) -> Iterator[AuditEntry | BrokenLine]:
    """The file's lines in their order. Raises ``OSError`` where it cannot be read."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield parse_entry(line) or BrokenLine(number)


def parse_entry(line: bytes) -> AuditEntry | None:
    """The entry of a line; ``None`` where it is none. An action of a later version is none of ours either."""
    try:
        found = json.loads(line)
        entry = AuditEntry(
            at=found["at"],
            action=found["action"],
            tenant=found["tenant"],
            key_id=found.get("key_id", ""),
            role=found.get("role", ""),
            subject=found.get("subject", {}),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return entry if _is_sound(entry) else None


def _is_sound(entry: AuditEntry) -> bool:
    subject: object = entry.subject
    texts = [entry.at, entry.tenant, entry.key_id, entry.role]
    if not isinstance(subject, dict) or entry.action not in ACTIONS:
        return False
    return all(isinstance(text, str) for text in [*texts, *subject, *subject.values()])
