"""The file of keys and quotas.

``{"version": 2, "secret": "<which>", "keys": [{"id", "tenant", "scopes", "hash", "created", "expires"?, "note"?}],
"quotas": {tenant: {…}}}``. ``hash`` is the HMAC-SHA256 of the key's text in hexadecimal, or ``sha256:`` and the plain
SHA-256 of an older key. Two older forms are read too, whose keys may do everything and never expire:
``{"tenant": ["<sha256 hex>", …]}``, and text with one ``tenant <sha256 hex>`` a line and ``#`` comments.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from prefold.access.allowances import Allowances, parse_allowances
from prefold.access.scopes import ALL_SCOPES, SCOPES, Scope, scopes_of
from prefold.conversation.ids import check_name
from prefold.conversation.strict_json import parse_json
from prefold.errors import ConfigurationError, InvalidInputError, PrefoldError

VERSION: Final = 2
MOST_FILE_BYTES: Final = 16 * 1024 * 1024
PLAIN: Final = "sha256:"
OLD_ID: Final = "old-"
"""How the id begins that an older key gets: the rest is of its hash."""
_OLD_ID_DIGITS: Final = 12
_HEX = re.compile(r"[0-9a-f]{64}")
_ID = re.compile(r"[a-z0-9-]{1,64}")
_MEMBERS: Final = frozenset({"version", "secret", "keys", "quotas"})
_KEY_MEMBERS: Final = frozenset({"id", "tenant", "scopes", "hash", "created", "expires", "note"})
_NOTE_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is known of a key."""

    id: str
    tenant: str
    scopes: frozenset[Scope]
    """What they imply included."""
    digest: bytes
    """HMAC-SHA256 of its text, or where it ``is_plain`` the SHA-256."""
    is_plain: bool = False
    created: str = ""
    expires: datetime | None = None
    """From then on it is refused. None: never."""
    note: str = ""

    def to_json(self) -> dict[str, object]:
        """The record as the file holds it."""
        scopes = ["admin"] if self.scopes == ALL_SCOPES else [one for one in SCOPES if one in self.scopes]
        known: dict[str, object] = {"id": self.id, "tenant": self.tenant, "scopes": scopes}
        known["hash"] = (PLAIN if self.is_plain else "") + self.digest.hex()
        known["created"] = self.created
        if self.expires is not None:
            known["expires"] = iso(self.expires)
        return known | ({"note": self.note} if self.note else {})


@dataclass(frozen=True, slots=True)
class KeyFile:
    """All that a file says."""

    keys: tuple[KeyRecord, ...] = ()
    allowances: Allowances = field(default_factory=Allowances)
    quotas: Mapping[str, Any] | None = None
    """As they were written, for writing them again."""
    mark: str = ""
    """Which secret made the hashes; empty: not said."""
    is_old: bool = False
    """One of the older forms."""

    def to_bytes(self) -> bytes:
        """The file in its present form."""
        known = {"version": VERSION, "secret": self.mark, "keys": [one.to_json() for one in self.keys]}
        return orjson.dumps(known | {"quotas": self.quotas or {}}, option=orjson.OPT_INDENT_2) + b"\n"


def parse_key_file(text: bytes) -> KeyFile:
    """What the text says. Raises ``ConfigurationError`` naming the place, never a hash."""
    if len(text) > MOST_FILE_BYTES:
        raise ConfigurationError(f"the key file is larger than {MOST_FILE_BYTES >> 20} MiB")
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError("the key file is not UTF-8") from error
    if not decoded.lstrip().startswith("{"):
        return _old(_line_pairs(decoded))
    try:
        document = parse_json(text, max_bytes=MOST_FILE_BYTES)
    except PrefoldError as error:  # where a name stands twice the detail shows it, and it may be a hash
        place = error.detail if error.field == "body" else "a name stands twice in one object"
        raise ConfigurationError(f"the key file is not JSON: {place}") from error
    return _present(document) if "version" in document else _old(_json_pairs(document))


def iso(when: datetime) -> str:
    """A time in UTC, as the file holds it."""
    return when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _present(document: Mapping[str, Any]) -> KeyFile:
    if document["version"] != VERSION:
        raise ConfigurationError(f"the key file has version {document['version']!r}; this one knows {VERSION}")
    _check_members(document, _MEMBERS, "the key file")
    mark, keys = document.get("secret", ""), document.get("keys", [])
    if not isinstance(mark, str) or not isinstance(keys, list):
        raise ConfigurationError("key file: secret is a text, and keys a list")
    quotas = document.get("quotas", {})
    return KeyFile(
        _distinct([_record(one, number) for number, one in enumerate(keys)]), parse_allowances(quotas), quotas, mark
    )


def _record(given: Any, number: int) -> KeyRecord:
    place = f"key file, keys[{number}]"
    if not isinstance(given, dict):
        raise ConfigurationError(f"{place}: must be an object")
    _check_members(given, _KEY_MEMBERS, place)
    texts = {name: given.get(name, "") for name in ("id", "tenant", "hash", "created", "note")}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise ConfigurationError(f"{place}: {name} must be a text")
    if not _ID.fullmatch(texts["id"]):
        raise ConfigurationError(f"{place}: id is 1 to 64 of a-z 0-9 -")
    scopes = given.get("scopes")
    try:
        check_name(texts["tenant"], "tenant")
        allowed = scopes_of(scopes if isinstance(scopes, list) else ())
    except InvalidInputError as error:
        raise ConfigurationError(f"{place}: {error.detail}") from error
    is_plain = texts["hash"].startswith(PLAIN)
    digest = _digest(texts["hash"].removeprefix(PLAIN), place)
    expires = None if given.get("expires") is None else _time(given["expires"], place)
    note = texts["note"][:_NOTE_CHARS]
    return KeyRecord(texts["id"], texts["tenant"], allowed, digest, is_plain, texts["created"], expires, note)


def _distinct(records: Sequence[KeyRecord]) -> tuple[KeyRecord, ...]:
    ids: set[str] = set()
    plain: dict[bytes, str] = {}
    for record in records:
        if record.id in ids:
            raise ConfigurationError(f"key file: the id {record.id} stands twice")
        ids.add(record.id)
        if record.is_plain and plain.setdefault(record.digest, record.tenant) != record.tenant:
            raise ConfigurationError(f"key file, {record.id}: the same key stands for two tenants")
    return tuple(records)


def _old(pairs: Iterator[tuple[str, str, object]]) -> KeyFile:
    records: dict[bytes, KeyRecord] = {}
    for place, tenant, given in pairs:
        try:
            check_name(tenant, "tenant")
        except InvalidInputError as error:
            raise ConfigurationError(f"key file, {place}: {error.detail}") from error
        digest = _digest(given, f"key file, {place}")
        record = KeyRecord(OLD_ID + digest.hex()[:_OLD_ID_DIGITS], tenant, ALL_SCOPES, digest, is_plain=True)
        if records.setdefault(digest, record).tenant != tenant:
            raise ConfigurationError(f"key file, {place}: the same key stands for two tenants")
    return KeyFile(_distinct(list(records.values())), is_old=True)


def _line_pairs(text: str) -> Iterator[tuple[str, str, object]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise ConfigurationError(f"key file, line {number}: expected a tenant and a hash")
        yield f"line {number}", words[0], words[1]


def _json_pairs(document: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    for tenant, hashes in document.items():
        for digest in hashes if isinstance(hashes, list) else [hashes]:
            yield f"tenant {tenant!r}", tenant, digest


def _digest(given: object, place: str) -> bytes:
    if not isinstance(given, str) or not _HEX.fullmatch(given):
        raise ConfigurationError(f"{place}: not a hash of 64 lower-case hexadecimal digits")
    return bytes.fromhex(given)


def _time(given: object, place: str) -> datetime:
    try:
        when = datetime.fromisoformat(str(given))
        if when.tzinfo is None:
            raise ConfigurationError(f"{place}: expires lacks its zone, as the Z in 2027-01-31T00:00:00Z")
        return when.astimezone(UTC)
    except (ValueError, OverflowError) as error:  # the last hours of the year 9999 are beyond it in some zones
        raise ConfigurationError(f"{place}: expires is a time such as 2027-01-31T00:00:00Z") from error


def _check_members(given: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    for name in given:
        if name not in known:
            raise ConfigurationError(f"{place}: there is no member {name[:40]!a}; there are {', '.join(sorted(known))}")
