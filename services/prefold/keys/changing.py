"""What can be done to the keys of a file."""

from dataclasses import replace
from datetime import datetime, timedelta

from prefold.access import KeyFile, KeyRecord, Scope, id_in, iso, keyed_hash, mark_of, new_key
from prefold.errors import ConfigurationError, NotFoundError

__all__ = ["find", "with_new_key", "with_successor", "without"]


def with_new_key(
    file: KeyFile,
    secret: bytes,
    *,
    tenant: str,
    scopes: frozenset[Scope],
    expires: datetime | None,
    note: str,
    now: datetime,
) -> tuple[KeyFile, KeyRecord, str]:
    """The file with one key more, its record and its text. Raises ``ConfigurationError`` for another secret."""
    if file.mark and file.mark != mark_of(secret):
        raise ConfigurationError("the keys of this file were hashed under another secret than the one that is set")
    key_id, text = new_key()
    digest = keyed_hash(secret, text.encode())
    record = KeyRecord(key_id, tenant, scopes, digest, created=iso(now), expires=expires, note=note)
    return replace(file, keys=(*file.keys, record), mark=mark_of(secret)), record, text


def with_successor(
    file: KeyFile, secret: bytes, key: str, *, keep: timedelta, expires: datetime | None, now: datetime
) -> tuple[KeyFile, KeyRecord, KeyRecord, str]:
    """The file with a key that may do what another may; that one ends after ``keep``. Also both records and the text.

    Raises ``NotFoundError``, also for one that has expired.
    """
    old = find(file, key)
    if old.expires is not None and old.expires <= now:
        raise NotFoundError(f"the key {old.id} has expired: create a new one")
    ending = replace(old, expires=min(old.expires or now + keep, now + keep))
    kept = replace(file, keys=tuple(ending if one.id == old.id else one for one in file.keys))
    changed, record, text = with_new_key(
        kept, secret, tenant=old.tenant, scopes=old.scopes, expires=expires, note=old.note, now=now
    )
    return changed, ending, record, text


def without(file: KeyFile, keys: tuple[str, ...]) -> tuple[KeyFile, list[KeyRecord]]:
    """The file without these keys, and what they were. Raises ``NotFoundError`` when one of them is not there."""
    gone = list({record.id: record for record in (find(file, key) for key in keys)}.values())
    return replace(file, keys=tuple(one for one in file.keys if one not in gone)), gone


def find(file: KeyFile, key: str) -> KeyRecord:
    """The record of an id, or of a whole key. Raises ``NotFoundError``."""
    key_id = id_in(key) or key
    for record in file.keys:
        if record.id == key_id:
            return record
    raise NotFoundError(f"there is no key {key_id[:64]!a} in the file: prefold keys list tells which there are")
