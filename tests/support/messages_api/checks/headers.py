"""The headers of a call: its credential, the version, the betas."""

import re
from collections.abc import Collection

from tests.support.messages_api.errors import ApiError, invalid
from tests.support.messages_api.journal import Entry

_VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")
_BETA = re.compile(r"[a-z][a-z0-9-]*-\d{4}-\d{2}-\d{2}")


def check_key(entry: Entry, keys: Collection[str] | None) -> str:
    """The credential. Any will do if ``keys`` is None."""
    if not entry.key:
        raise ApiError(401, "authentication_error", "x-api-key header is required")
    if keys is not None and entry.key not in keys:
        raise ApiError(401, "authentication_error", "invalid x-api-key")
    return entry.key


def check_version(entry: Entry) -> str:
    version = entry.headers.get("anthropic-version")
    if not version:
        raise invalid("anthropic-version: header is required")
    if version not in _VERSIONS:
        raise invalid(f'anthropic-version: "{version}" is not a valid version')
    return version


def betas_of(entry: Entry) -> list[str]:
    """The betas that the call asks for; 400 for one that no beta is called like."""
    given = [name.strip() for name in entry.headers.get("anthropic-beta", "").split(",") if name.strip()]
    for name in given:
        if not _BETA.fullmatch(name):
            raise invalid(
                f"Unexpected value(s) `{name}` for the `anthropic-beta` header. Please consult our documentation at"
                " docs.anthropic.com or try again without the header."
            )
    return given
