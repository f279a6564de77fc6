"""The text of a key, and what is kept of it.

``pf_<id>_<random>``: the id finds the record, 256 random bits behind it are the secret. Kept is the HMAC-SHA256 of the
whole text under a secret that is not in the file of keys, so that whoever reads or writes that file alone can neither
find a key nor make one.
"""

import hmac
import secrets
from typing import Final

ID_CHARS: Final = 12
MOST_KEY_BYTES: Final = 512
_PREFIX: Final = "pf"
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_RANDOM_BYTES: Final = 32
_MARK: Final = b"prefold: which secret made these hashes?"


def new_key() -> tuple[str, str]:
    """Id and text of a new key. The id is no secret, and says nothing of its tenant."""
    key_id = "".join(secrets.choice(_LETTERS) for _ in range(ID_CHARS))
    return key_id, f"{_PREFIX}_{key_id}_{secrets.token_urlsafe(_RANDOM_BYTES)}"


def id_in(key: str) -> str:
    """The id that a text names, if it looks like a key; else empty."""
    prefix, _, rest = key.partition("_")
    key_id, _, secret = rest.partition("_")
    return key_id if prefix == _PREFIX and secret else ""


def keyed_hash(secret: bytes, key: bytes) -> bytes:
    """What is kept of a key."""
    return hmac.digest(secret, key, "sha256")


def mark_of(secret: bytes) -> str:
    """Tells one secret from another, and nothing else of it."""
    return keyed_hash(secret, _MARK).hex()[:16]
