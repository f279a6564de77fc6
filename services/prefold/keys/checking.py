"""What is wrong with a key file and its secret."""

import hashlib
import hmac
import stat
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from prefold.access import KeyFile, KeyRecord, id_in, keyed_hash, mark_of

__all__ = ["Finding", "findings_of", "owner_of"]

_SOON = timedelta(days=14)


class Finding(NamedTuple):
    """One thing to tell. ``is_wrong``: a gateway would not serve with it, or strangers could."""

    is_wrong: bool
    text: str


def findings_of(
    file: KeyFile, secret: bytes | None, *, path: Path, secret_path: Path | None, now: datetime
) -> list[Finding]:
    """All of them; none: nothing is amiss."""
    return [
        *_of_modes(path, secret_path),
        *_of_secret(file, secret),
        *_of_keys(file, now),
        *_of_tenants(file),
    ]


def owner_of(file: KeyFile, secret: bytes | None, key: str) -> KeyRecord | None:
    """The record of a key; None: it is not known. As a gateway would find it."""
    text = key.strip().encode("utf-8", "surrogateescape")
    plain = hashlib.sha256(text).digest()
    for record in file.keys:
        if record.is_plain and hmac.compare_digest(record.digest, plain):
            return record
        if not record.is_plain and secret is not None and record.id == id_in(key):
            return record if hmac.compare_digest(record.digest, keyed_hash(secret, text)) else None
    return None


def _of_modes(path: Path, secret_path: Path | None) -> Iterator[Finding]:
    mode = path.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield Finding(True, f"{path} can be written by others ({stat.filemode(mode)}): chmod go-w")
    if secret_path is not None and (mode := secret_path.stat().st_mode) & stat.S_IRWXO:
        yield Finding(True, f"{secret_path} can be read by everybody ({stat.filemode(mode)}): chmod o-rwx")


def _of_secret(file: KeyFile, secret: bytes | None) -> Iterator[Finding]:
    if all(record.is_plain for record in file.keys):
        return
    if secret is None:
        yield Finding(True, "no secret is set: PREFOLD_API_KEYS_SECRET_FILE or PREFOLD_API_KEYS_SECRET")
    elif file.mark and file.mark != mark_of(secret):
        yield Finding(True, "the secret that is set is another one than the keys were hashed under")


def _of_keys(file: KeyFile, now: datetime) -> Iterator[Finding]:
    if not file.keys:
        yield Finding(True, "there is no key: prefold keys create")
    if file.is_old:
        yield Finding(False, "an older form without scopes and expiry: the next create or rotate rewrites it")
    for record in file.keys:
        if record.is_plain and not file.is_old:
            yield Finding(
                False, f"{record.id} of {record.tenant} is an older key, hashed without the secret: rotate it"
            )
        if record.expires is not None and record.expires <= now:
            yield Finding(False, f"{record.id} of {record.tenant} has expired: revoke it")
        elif record.expires is not None and record.expires - now <= _SOON:
            yield Finding(False, f"{record.id} of {record.tenant} expires within {_SOON.days} days")


def _of_tenants(file: KeyFile) -> Iterator[Finding]:
    with_keys = {record.tenant for record in file.keys}
    for tenant in sorted(set(file.allowances.of_tenants) - with_keys):
        yield Finding(False, f"quotas of {tenant}, who has no key")
