"""The gateway that the cases are played on: a running one, or a temporary stack with a key for each tenant."""

import hashlib
import json
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from prefold.client import Prefold
from prefold.stack.embedded import temporary_stack

Clients = Mapping[str, Prefold]


@contextmanager
def running_gateway(url: str, keys: Mapping[str, str | None]) -> Iterator[Clients]:
    """A client for each tenant that there is a key for."""
    with ExitStack() as stack:
        yield {tenant: stack.enter_context(Prefold(url, api_key=key)) for tenant, key in keys.items()}


@contextmanager
def own_gateway(tenants: Iterable[str]) -> Iterator[Clients]:
    """A stack that lives as long as the block, with a client for each tenant."""
    keys: dict[str, str | None] = {tenant: secrets.token_urlsafe(32) for tenant in sorted(tenants)}
    with tempfile.TemporaryDirectory(prefix="prefold-eval-") as folder:
        path = Path(folder) / "keys.json"
        path.write_text(json.dumps({tenant: _digest(str(key)) for tenant, key in keys.items()}))
        with temporary_stack(api_keys_file=path) as stack, running_gateway(stack.gateway_url, keys) as clients:
            yield clients


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
