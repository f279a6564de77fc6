"""Who is asking: keys are random and long, so the file of their SHA-256 hashes gives nothing away.

The file is JSON, ``{"tenant": ["<sha256 hex>", …]}`` (one string instead of a list will do), or text with one
``tenant <sha256 hex>`` a line and ``#`` comments. A key is at least 128 random bits; make one with
``python -c "import secrets; print(secrets.token_urlsafe(32))"`` and its hash with
``python -c "import hashlib, sys; print(hashlib.sha256(sys.argv[1].encode()).hexdigest())" KEY``.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import orjson
import structlog

from prefold.conversation.ids import check_name
from prefold.errors import ConfigurationError, InvalidInputError, UnauthenticatedError

log = structlog.get_logger(__name__)

DEFAULT_TENANT = "default"
_HEX = re.compile(r"[0-9a-f]{64}")
_BUCKET_BYTES = 4
_MOST_KEY_BYTES = 512

Monotonic = Callable[[], float]


def parse_keys(text: bytes) -> dict[bytes, str]:
    """SHA-256 digest → tenant. Raises ``ConfigurationError`` naming the line or the tenant, never a hash."""
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError("the key file is not UTF-8") from error
    pairs = _json_pairs(text) if decoded.lstrip().startswith("{") else _line_pairs(decoded)
    digests: dict[bytes, str] = {}
    for place, tenant, digest in pairs:
        try:
            check_name(tenant, "tenant")
        except InvalidInputError as error:
            raise ConfigurationError(f"key file, {place}: {error.detail}") from error
        if not _HEX.fullmatch(digest):
            raise ConfigurationError(f"key file, {place}: not a SHA-256 in 64 lower-case hexadecimal digits")
        if digests.setdefault(bytes.fromhex(digest), tenant) != tenant:
            raise ConfigurationError(f"key file, {place}: the same key stands for two tenants")
    return digests


def _line_pairs(text: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise ConfigurationError(f"key file, line {number}: expected a tenant and a hash")
        yield f"line {number}", words[0], words[1]


def _json_pairs(text: bytes) -> Iterator[tuple[str, str, str]]:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"the key file is not JSON (line {error.lineno})") from error
    for tenant, hashes in document.items():
        for digest in hashes if isinstance(hashes, list) else [hashes]:
            yield f"tenant {tenant!r}", tenant, str(digest)


class KeyRing:
    """The tenants' keys. A change of the file counts within ``check_every``; one that cannot be read is logged and changes nothing."""

    def __init__(
        self, path: Path, *, check_every: timedelta = timedelta(seconds=5), clock: Monotonic = time.monotonic
    ) -> None:
        self._path = path
        self._check_seconds = check_every.total_seconds()
        self._clock = clock
        self._buckets: Mapping[bytes, list[tuple[bytes, str]]] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._next_check = 0.0

    def load(self) -> int:
        """Number of keys. Raises ``ConfigurationError`` when the file is missing, broken, or names no key."""
        try:
            stamp, text = self._read()
        except OSError as error:
            raise ConfigurationError(f"the key file cannot be read: {error.strerror}") from error
        digests = parse_keys(text)
        if not digests:
            raise ConfigurationError("the key file names no key")
        self._take(digests, stamp)
        return len(digests)

    def tenant_of(self, authorization: str | None) -> str:
        """The tenant whose key the Authorization header carries. Raises ``UnauthenticatedError``."""
        self._reload_if_changed()
        scheme, _, key = (authorization or "").partition(" ")
        key = key.strip()
        if scheme.lower() != "bearer" or not key or len(key) > _MOST_KEY_BYTES:
            raise UnauthenticatedError("the request needs the header `Authorization: Bearer <key>`")
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        found: str | None = None
        for known, tenant in self._buckets.get(digest[:_BUCKET_BYTES], ()):
            if hmac.compare_digest(known, digest):
                found = tenant
        if found is None:
            raise UnauthenticatedError("the key is not known")
        return found

    def _reload_if_changed(self) -> None:
        now = self._clock()
        if now < self._next_check:
            return
        self._next_check = now + self._check_seconds
        try:
            if self._stamp_of_file() == self._stamp:
                return
            stamp, text = self._read()
            self._take(parse_keys(text), stamp)
        except (OSError, ConfigurationError) as error:
            log.error("key_file_unusable", path=str(self._path), reason=str(error), kept="the keys read before")
            return
        log.info("keys_reloaded", keys=sum(map(len, self._buckets.values())))

    def _read(self) -> tuple[tuple[int, int, int], bytes]:
        # The stamp is taken first: a change during the read is then seen at the next check.
        return self._stamp_of_file(), self._path.read_bytes()

    def _stamp_of_file(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _take(self, digests: Mapping[bytes, str], stamp: tuple[int, int, int]) -> None:
        buckets: dict[bytes, list[tuple[bytes, str]]] = {}
        for digest, tenant in digests.items():
            buckets.setdefault(digest[:_BUCKET_BYTES], []).append((digest, tenant))
        self._buckets, self._stamp = buckets, stamp
