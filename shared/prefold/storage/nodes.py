"""Which server of a cluster a command of no key goes to."""

from typing import Any

from redis.asyncio import Redis

from prefold.storage.cluster import ClusterClient

__all__ = ["on_node_of"]


def on_node_of(client: Redis, key: str) -> dict[str, Any]:
    """Options of ``execute_command`` that send it to the server of ``key``; none where there is one server only."""
    if isinstance(client, ClusterClient):
        return {"target_nodes": client.at_key(key)}
    return {}
