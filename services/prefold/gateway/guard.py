"""Who may pass. With keys: the key alone says the tenant. Without: this machine only, as tenant ``default``.

Without keys a browser on this machine is the danger: any page may send requests to a loopback port, and by
rebinding its own name even read the answers. So the Host must be a loopback name and the Origin, if any, too.
"""

from typing import Protocol
from urllib.parse import urlsplit

from starlette.types import Scope

from prefold.config.settings import is_loopback
from prefold.gateway.credentials import DEFAULT_TENANT, KeyRing
from prefold.gateway.problems import HttpRefusalError


class Guard(Protocol):
    """Names the tenant of a request, or refuses it. Never blocks for longer than a look at a file."""

    def admit(self, scope: Scope, *, public: bool) -> str:
        """The tenant. ``public`` routes need no credential; what they answer belongs to no tenant."""
        ...


class KeyGuard:
    """Keys are configured: tenants by their Bearer key."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    def admit(self, scope: Scope, *, public: bool) -> str:
        """See ``Guard``."""
        if public:
            return ""
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        return self._keys.tenant_of(values[0].decode("latin-1") if len(values) == 1 else None)


class LoopbackGuard:
    """No keys are configured: whoever is on this machine, and no web page of elsewhere."""

    def admit(self, scope: Scope, *, public: bool) -> str:  # noqa: ARG002  # public or not, a page must not reach it
        """See ``Guard``."""
        headers = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or not _names_loopback(f"http://{hosts[0].decode('latin-1')}"):
            raise HttpRefusalError(403, "host_refused", "without keys only a loopback host is served", field="host")
        for name, value in headers:
            if name == b"origin" and not _names_loopback(value.decode("latin-1")):
                raise HttpRefusalError(403, "origin_refused", "without keys no other site is served", field="origin")
            if name == b"sec-fetch-site" and value == b"cross-site":
                raise HttpRefusalError(
                    403, "origin_refused", "without keys no other site is served", field="sec-fetch-site"
                )
        return DEFAULT_TENANT


def _names_loopback(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return is_loopback(parts.hostname or "") and parts.username is None and parts.path in ("", "/")
    except ValueError:
        return False
