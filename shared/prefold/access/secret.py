"""The secret that keys are hashed under, kept apart from their hashes."""

from pathlib import Path
from typing import Final

from prefold.config.settings import KeySettings
from prefold.errors import ConfigurationError

LEAST_SECRET_BYTES: Final = 32
_MOST_SECRET_BYTES: Final = 4096


def secret_of(settings: KeySettings) -> bytes | None:
    """The secret that is set; None: none is. Raises ``ConfigurationError`` for one that is short or cannot be read."""
    if settings.api_keys_secret is not None:
        return _checked(settings.api_keys_secret.get_secret_value(), "PREFOLD_API_KEYS_SECRET")
    if settings.api_keys_secret_file is None:
        return None
    return _checked(_read(settings.api_keys_secret_file), "PREFOLD_API_KEYS_SECRET_FILE")


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_SECRET_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        mend = "; prefold keys init makes one" if isinstance(error, FileNotFoundError) else ""
        raise ConfigurationError(f"PREFOLD_API_KEYS_SECRET_FILE: {path} cannot be read: {reason}{mend}") from error


def _checked(text: str, variable: str) -> bytes:
    secret = text.strip().encode()
    if len(secret) < LEAST_SECRET_BYTES:
        raise ConfigurationError(f"{variable}: the secret is shorter than {LEAST_SECRET_BYTES} bytes")
    return secret
