"""Addresses of Redis: one server, or the nodes of a cluster."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["ClusterAddress", "check_server_url", "check_sessions_url", "is_cluster_url"]

_DEFAULT_PORT = 6379
_CLUSTER = re.compile(
    r"(?P<scheme>rediss?)\+cluster://((?P<credentials>[^@/?#]*@))?(?P<nodes>[^@/?#]+)(/0?)?(\?(?P<query>[^#]*))?"
)
_NODE = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\[\]:,]+)(:(?P<port>\d{1,5}))?")
_CLUSTER_FORM = "redis+cluster://[user:password@]host:port,host:port (rediss+cluster:// with TLS)"


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """``redis+cluster://user:password@host:port,host:port?option=value``: a few nodes that tell of the others.

    With ``rediss+cluster`` every connection is encrypted. Credentials and options hold for every node.
    """

    seeds: tuple[tuple[str, int], ...]
    scheme: str
    """Of one node: ``redis`` or ``rediss``."""
    credentials: str
    """As they stand in the URL, with their ``@``; or empty."""
    query: str
    """redis-py's options for connections, as they stand in the URL; or empty."""

    @classmethod
    def parse(cls, url: str) -> "ClusterAddress":
        """Raises ``ValueError`` that names the form, and never the URL, which may hold a password."""
        match = _CLUSTER.fullmatch(url)
        if match is None:
            raise ValueError(f"expected {_CLUSTER_FORM}; a cluster has no database but 0")
        seeds = tuple(_node(text) for text in match["nodes"].split(","))
        return cls(seeds, match["scheme"], match["credentials"] or "", match["query"] or "")

    def node_url(self, host: str, port: int) -> str:
        """URL of one node, as redis-py takes it."""
        shown = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{self.credentials}{shown}:{port}/0" + (f"?{self.query}" if self.query else "")


def is_cluster_url(url: str) -> bool:
    """True for ``redis+cluster://`` and ``rediss+cluster://``."""
    return url.partition("://")[0] in ("redis+cluster", "rediss+cluster")


def check_server_url(value: str) -> str:
    """``value`` if it names one server; else ``ValueError``."""
    parts = urlsplit(value)
    if is_cluster_url(value):
        raise ValueError("only the sessions can live on a cluster; expected redis://host:port/db")
    if parts.scheme == "unix":
        if not parts.path.startswith("/"):
            raise ValueError("a unix:// address needs an absolute path, as in unix:///run/redis.sock")
    elif parts.scheme not in ("redis", "rediss") or not parts.hostname:
        raise ValueError("expected redis://host:port/db, rediss://… or unix:///path")
    return value


def check_sessions_url(value: str) -> str:
    """``value`` if it names one server or a cluster; else ``ValueError``."""
    if not is_cluster_url(value):
        return check_server_url(value)
    ClusterAddress.parse(value)
    return value


def _node(text: str) -> tuple[str, int]:
    match = _NODE.fullmatch(text)
    port = int(match["port"] or _DEFAULT_PORT) if match else 0
    if match is None or not 0 < port < 65_536:
        raise ValueError(f"expected {_CLUSTER_FORM}")
    return match["host"].strip("[]"), port
