"""Who may pass. With keys: the key alone says the tenant. Without: this machine only, as tenant ``default``.

Without keys a browser on this machine is the danger: any page may send requests to a loopback port, and by
rebinding its own name even read the answers. So the Host must be a loopback name and the Origin, if any, too.
"""

from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import urlsplit

from starlette.types import Scope

from prefold.access import Allowances
from prefold.config.settings import is_loopback
from prefold.gateway.callers import NOBODY, THIS_MACHINE, Caller
from prefold.gateway.credentials import KeyRing, bearer_of
from prefold.gateway.operations import Operation
from prefold.gateway.problems import HttpRefusalError

_NO_LIMITS: Final = Allowances()


class Guard(Protocol):
    """Names whom a request comes from, or refuses it. Never blocks for longer than a look at a file."""

    def admit(self, scope: Scope, operation: Operation | None) -> Caller:
        """The caller, who may do this. None: there is no such operation, which only a caller may hear.

        ``public`` operations need no credential; what they answer belongs to no tenant.
        """
        ...

    def holds(self, caller: Caller) -> bool:
        """False once the caller would not be admitted any more: for answers that go on and on."""
        ...

    def allowances(self) -> Allowances:
        """What the tenants may use now."""
        ...


class KeyGuard:
    """Keys are configured: tenants by their Bearer key."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys

    def admit(self, scope: Scope, operation: Operation | None) -> Caller:
        """See ``Guard``."""
        if operation is not None and operation.public:
            return NOBODY
        caller = self._keys.caller_of(bearer_of(scope["headers"]))
        if operation is not None and operation.scope not in caller.scopes:
            raise HttpRefusalError(403, "scope_missing", f"the key lacks the scope `{operation.scope}`")
        return caller

    def holds(self, caller: Caller) -> bool:
        """See ``Guard``."""
        return self._keys.holds(caller)

    def allowances(self) -> Allowances:
        """See ``Guard``."""
        return self._keys.allowances


class LoopbackGuard:
    """No keys are configured: whoever is on this machine, and no web page of elsewhere."""

    def admit(self, scope: Scope, operation: Operation | None) -> Caller:  # noqa: ARG002  # a page must reach none
        """See ``Guard``."""
        hosts = 0
        for name, value in scope["headers"]:
            if name == b"host":
                hosts += 1
                if not _names_loopback(b"http://" + value):
                    raise _host_refused()
            elif name == b"origin" and not _names_loopback(value):
                raise HttpRefusalError(403, "origin_refused", "without keys no other site is served", field="origin")
            elif name == b"sec-fetch-site" and value == b"cross-site":
                raise HttpRefusalError(
                    403, "origin_refused", "without keys no other site is served", field="sec-fetch-site"
                )
        if hosts != 1:
            raise _host_refused()
        return THIS_MACHINE

    def holds(self, caller: Caller) -> bool:  # noqa: ARG002  # there is nothing to lose
        """See ``Guard``."""
        return True

    def allowances(self) -> Allowances:
        """See ``Guard``."""
        return _NO_LIMITS


def _host_refused() -> HttpRefusalError:
    return HttpRefusalError(403, "host_refused", "without keys only a loopback host is served", field="host")


@lru_cache(maxsize=256)
def _names_loopback(url: bytes) -> bool:
    try:
        parts = urlsplit(url.decode("latin-1"))
        return is_loopback(parts.hostname or "") and parts.username is None and parts.path in ("", "/")
    except ValueError:
        return False
