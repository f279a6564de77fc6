"""The audit log: who changed access or removed data, without content."""

from prefold.audit.entries import ACTIONS, AuditAction, AuditEntry, BrokenLine, parse_entry, read_audit
from prefold.audit.log import AuditLog

__all__ = ["ACTIONS", "AuditAction", "AuditEntry", "AuditLog", "BrokenLine", "parse_entry", "read_audit"]
