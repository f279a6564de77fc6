"""Notes of what a caller removed."""

import asyncio
from collections.abc import Mapping

from prefold.audit import AuditAction, AuditLog
from prefold.gateway.callers import Caller


async def note_removal(audit: AuditLog, action: AuditAction, caller: Caller, subject: Mapping[str, str]) -> None:
    """It stands in the audit log when this returns. In a thread: the disk may be slow."""
    await asyncio.to_thread(audit.note, action, tenant=caller.tenant, key_id=caller.key_id, subject=subject)
