"""Who is asking: keys are looked up by their id, and compared by a hash under a secret that their file does not hold."""

import hashlib
import hmac
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from prefold.access import (
    MOST_KEY_BYTES,
    Allowances,
    KeyFile,
    KeyRecord,
    WatchedFile,
    id_in,
    keyed_hash,
    mark_of,
)
from prefold.access.watched_file import CHECK_EVERY, Monotonic
from prefold.errors import ConfigurationError, UnauthenticatedError
from prefold.gateway.callers import Caller

__all__ = ["KeyRing"]

_PLAIN_BUCKET_BYTES: Final = 4
_NO_SECRET: Final = b"no secret is set, and no key is hashed under this"
_NEVER: Final = float("inf")

WallClock = Callable[[], float]


class _Held(NamedTuple):
    digest: bytes
    ends: float
    """In s since 1970."""
    caller: Caller


_NOBODYS: Final = _Held(bytes(32), _NEVER, Caller("", frozenset()))
"""What a key is compared with whose id is unknown, so that it takes as long."""


class KeyRing:
    """The tenants' keys and quotas.

    A change of the file counts within ``check_every``; one that cannot be used is logged and changes nothing.
    """

    def __init__(
        self,
        path: Path,
        *,
        secret: bytes | None = None,
        check_every: timedelta = CHECK_EVERY,
        clock: Monotonic = time.monotonic,
        wall: WallClock = time.time,
    ) -> None:
        self._file = WatchedFile(path, check_every=check_every, clock=clock)
        self._secret = secret
        self._time = _Forward(clock, wall)
        self._by_id: dict[str, _Held] = {}
        self._plain: dict[bytes, list[_Held]] = {}
        self.allowances = Allowances()
        """What the tenants may use."""

    def load(self) -> int:
        """Number of keys.

        Raises ``ConfigurationError`` when the file is missing or broken, names no key, or wants a secret that is not set.
        """
        content = self._file.load()
        if not content.keys:
            raise ConfigurationError("the key file names no key: make one with prefold keys create")
        self._take(content)
        return len(content.keys)

    def caller_of(self, authorization: str | None) -> Caller:
        """The owner of the key that the Authorization header carries. Raises ``UnauthenticatedError``."""
        self.refresh()
        scheme, _, key = (authorization or "").partition(" ")
        key = key.strip()
        if scheme.lower() != "bearer" or not key or len(key) > MOST_KEY_BYTES:
            raise UnauthenticatedError("the request needs the header `Authorization: Bearer <key>`")
        held = self._found(key)
        if held is None:
            raise UnauthenticatedError("the key is not known")
        if held.ends != _NEVER and held.ends <= self._time.now():
            raise UnauthenticatedError("the key has expired", code="key_expired")
        return held.caller

    def holds(self, caller: Caller) -> bool:
        """False once the key of a caller is revoked or expired, or allows less: for answers that go on and on."""
        self.refresh()
        held = self._by_id.get(caller.key_id)
        return held is not None and held.caller == caller and held.ends > self._time.now()

    def refresh(self) -> None:
        """Takes up a change of the file, if it is time to look."""
        if self._file.look():
            try:
                self._take(self._file.content)
            except ConfigurationError as error:
                self._file.refuse(error)

    def _found(self, key: str) -> _Held | None:
        text = key.encode("utf-8", "surrogateescape")
        if key_id := id_in(key):
            held = self._by_id.get(key_id, _NOBODYS)
            is_same = hmac.compare_digest(held.digest, keyed_hash(self._secret or _NO_SECRET, text))
            if is_same and held is not _NOBODYS and self._secret is not None:
                return held
        digest = hashlib.sha256(text).digest()
        found: _Held | None = None
        for one in self._plain.get(digest[:_PLAIN_BUCKET_BYTES], ()):
            if hmac.compare_digest(one.digest, digest):
                found = one
        return found

    def _take(self, content: KeyFile) -> None:
        self._check_secret(content)
        by_id, plain = {}, dict[bytes, list[_Held]]()
        for record in content.keys:
            held = by_id[record.id] = _held(record)
            if record.is_plain:
                plain.setdefault(record.digest[:_PLAIN_BUCKET_BYTES], []).append(held)
        self._by_id, self._plain, self.allowances = by_id, plain, content.allowances

    def _check_secret(self, content: KeyFile) -> None:
        if all(record.is_plain for record in content.keys):
            return
        if self._secret is None:
            raise ConfigurationError(
                "the key file needs its secret: set PREFOLD_API_KEYS_SECRET_FILE or PREFOLD_API_KEYS_SECRET"
            )
        if content.mark and not hmac.compare_digest(content.mark.encode(), mark_of(self._secret).encode()):
            raise ConfigurationError("the keys were hashed under another secret than the one that is set")


def _held(record: KeyRecord) -> _Held:
    ends = _NEVER if record.expires is None else record.expires.timestamp()
    return _Held(record.digest, ends, Caller(record.tenant, record.scopes, record.id))


class _Forward:
    """Wall clock that is never behind what has passed since the start: a clock set back revives no expired key."""

    def __init__(self, clock: Monotonic, wall: WallClock) -> None:
        self._clock, self._wall = clock, wall
        self._ahead = wall() - clock()

    def now(self) -> float:
        """In s since 1970."""
        return max(self._wall(), self._clock() + self._ahead)


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The Authorization header; None without it, and when it is sent twice."""
    values = [value for name, value in headers if name == b"authorization"]
    return values[0].decode("latin-1") if len(values) == 1 else None
