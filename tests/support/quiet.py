"""When all work that was asked for is done, and what stands in the stores then."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from redis import Redis

from prefold.jobs import QUEUES, hint_queue
from prefold.storage.events import GROUP
from prefold.storage.keys import PARTITIONS, PartitionKeys

Stored = dict[str, tuple[str, Any, int]]
"""Key → type, value, end of life (ms, -1: none)."""


class Stores:
    """The stores of one deployment, seen from outside. Not for async tests: its calls block."""

    def __init__(self, sessions: Redis, queue: Redis, qdrant_url: str, api_key: str | None = None) -> None:
        # Without redis-py's types, which allow for text where we get bytes.
        self.sessions: Any = sessions
        self.queue: Any = queue
        headers = {"api-key": api_key} if api_key else {}
        self.vectors = httpx.Client(base_url=qdrant_url, headers=headers, timeout=10)

    def streams(self) -> list[str]:
        """The event streams that exist."""
        names = [PartitionKeys.of(partition).events for partition in range(PARTITIONS)]
        with self.sessions.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.exists(name)
            return [name for name, exists in zip(names, pipe.execute(), strict=True) if exists]

    def unread(self) -> int:
        """Events that the dispatchers have not read or not acknowledged; -1: a stream has no group."""
        left = 0
        for stream in self.streams():
            groups = [group for group in self.sessions.xinfo_groups(stream) if group["name"] == GROUP.encode()]
            if not groups:
                return -1
            last = groups[0]["last-delivered-id"].decode()
            left += groups[0]["pending"] + bool(self.sessions.xrange(stream, min=f"({last}", count=1))
        return left

    def due(self, *kinds: str, by_ms: int | None = None) -> list[str]:
        """Due entries of these kinds, whenever they are due, or those that are due by then."""
        entries: list[Any] = []
        for partition in range(PARTITIONS):
            entries += self.sessions.zrangebyscore(PartitionKeys.of(partition).due, "-inf", by_ms or "+inf")
        return [entry for raw in entries if (entry := raw.decode()).split(":", 1)[0] in kinds]

    def jobs(self) -> int:
        """Jobs that wait or run."""
        queues = [hint_queue(name, self.queue) for name in QUEUES]
        return sum(queue.count + queue.started_job_registry.count for queue in queues)

    def is_quiet(self) -> bool:
        """Nothing is owed, asked for or under way."""
        owes = self.due("embed", "compact") or self.due("remember", by_ms=time.time_ns() // 1_000_000)
        return self.unread() == 0 and self.jobs() == 0 and not owes

    def stored(self, pattern: str = "pf1:*") -> Stored:
        """Everything in the session store, in a form that can be compared."""
        return {name: self._value(name) for raw in self.sessions.scan_iter(pattern) if (name := raw.decode())}

    def _value(self, name: str) -> tuple[str, Any, int]:
        kind = self.sessions.type(name).decode()
        readers: dict[str, Any] = {
            "string": lambda: self.sessions.get(name),
            "hash": lambda: self.sessions.hgetall(name),
            "list": lambda: self.sessions.lrange(name, 0, -1),
            "set": lambda: sorted(self.sessions.smembers(name)),
            "zset": lambda: self.sessions.zrange(name, 0, -1, withscores=True),
            "stream": lambda: self.sessions.xrange(name),
        }
        return kind, readers[kind](), self.sessions.pexpiretime(name)

    def points(self) -> dict[str, dict[str, Any]]:
        """Every vector of every collection with its payload, by id."""
        found: dict[str, dict[str, Any]] = {}
        for item in self._call("GET", "/collections", None)["collections"]:
            following: Any = None
            while True:
                body = {"limit": 256, "with_payload": True, "with_vector": True, "offset": following}
                page = self._call("POST", f"/collections/{item['name']}/points/scroll", body)
                found |= {str(point["id"]): {**point, "collection": item["name"]} for point in page["points"]}
                if (following := page.get("next_page_offset")) is None:
                    break
        return found

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        given = {name: value for name, value in (body or {}).items() if value is not None}
        return self.vectors.request(method, path, json=given if body else None).raise_for_status().json()["result"]

    def close(self) -> None:
        self.vectors.close()
        self.sessions.close()
        self.queue.close()


@contextmanager
def opened_stores(redis_url: str, queue_url: str, qdrant_url: str, api_key: str | None = None) -> Iterator[Stores]:
    stores = Stores(Redis.from_url(redis_url), Redis.from_url(queue_url), qdrant_url, api_key)
    try:
        yield stores
    finally:
        stores.close()
