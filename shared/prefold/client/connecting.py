"""What both HTTP clients are built with."""

from ipaddress import ip_address
from typing import Any

import httpx

from prefold.errors import InvalidInputError

DEFAULT_URL = "http://127.0.0.1:7077"


def client_options(url: str, api_key: str | None) -> dict[str, Any]:
    """Arguments of ``httpx.Client`` and ``httpx.AsyncClient``.

    InvalidInputError when ``url`` is no HTTP URL, or ``api_key`` cannot be sent. The line end of a key that was read
    from a file is no part of it. A name and password in ``url`` are sent as such and quoted nowhere.
    """
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL:  # whose message may quote a password
        raise InvalidInputError("must be a URL such as http://host:port", field="url") from None
    if base.scheme not in ("http", "https") or not base.host:
        raise InvalidInputError("must begin with http:// or https:// and name a host", field="url")
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    key = (api_key or "").strip()
    if not key.isascii() or not key.isprintable():  # said here, because httpx would quote the whole header
        raise InvalidInputError("must be printable ASCII", field="api_key")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return {
        "base_url": base.copy_with(userinfo=b""),
        "headers": headers,
        "auth": (base.username, base.password) if base.userinfo else None,
        # A proxy from the environment has no business between us and this very machine.
        "trust_env": not _is_loopback(base.host),
    }


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
