"""What lies in the stores, by whose words are in it."""

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import numpy as np
from numpy.typing import NDArray
from redis import Redis

from tests.support.embedding_server import vector_of
from tests.support.tenants.people import Person, owner_of_session, people_in

_OF_SESSION = re.compile(rb"pf1:\{p\w+\}:s:([^:]+):([^:]+):\w+")
_SAME = 1 - 1e-6
_OF_USER = re.compile(rb"pf1:\{u:([^:]+):([^}]+)\}:\w+")


@dataclass
class Seen:
    """What was looked at, and what should not have been there."""

    looked_at: int = 0
    with_words: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, what: str, content: bytes, owner: Person | None) -> None:
        """``owner``: the one whose words may be in it; None: nobody's."""
        found = people_in(content)
        self.looked_at += 1
        self.with_words += bool(found)
        if foreign := found - ({owner} if owner else set()):
            self.faults.append(f"{what} of {owner} has words of {sorted(foreign)}")


def look_into_keys(server: Redis) -> Seen:
    """Every key of the sessions' server: a session's or a user's holds its owner's words alone, any other none."""
    seen = Seen()
    for name in server.scan_iter(count=1000):
        seen.add(name.decode(), name + (server.dump(name) or b""), _owner(name))
    return seen


def _owner(name: bytes) -> Person | None:
    if found := _OF_SESSION.fullmatch(name):
        return owner_of_session(*(unquote(part.decode()) for part in found.groups()))
    if found := _OF_USER.fullmatch(name):
        tenant, user = (unquote(part.decode()) for part in found.groups())
        return Person(int(tenant.removeprefix("tenant")), int(user[1:]))
    return None


@dataclass
class JobsSeen(Seen):
    """Jobs as they lay in the queue: ids, never words."""

    names: set[str] = field(default_factory=set)
    lives: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Tenant and session of each incarnation: nobody else may have the same."""


def look_into_jobs(server: Redis, seen: JobsSeen) -> None:
    for name in server.scan_iter(count=1000):
        packed: Any = server.hget(name.decode(), "data") if name.startswith(b"rq:job:") else None
        if not packed:
            continue
        data = zlib.decompress(packed)
        seen.add(name.decode(), data + (server.dump(name) or b""), None)
        function, _, arguments, _ = json.loads(data)
        seen.names.add(function.rpartition(".")[2])
        for tenant, session, incarnation, *_ in arguments[0]:
            if seen.lives.setdefault(incarnation, (tenant, session)) != (tenant, session):
                seen.faults.append(f"{name.decode()} takes {incarnation} for {tenant}'s {session}")


def look_into_logs(folder: Path) -> Seen:
    """What the processes wrote about their work names ids, never words."""
    seen = Seen()
    for path in sorted(folder.iterdir()):
        seen.add(path.name, path.read_bytes(), None)
    return seen


def left_aside(sessions: Redis, queue: Redis) -> list[str]:
    """Work that failed for good."""
    dead = [name.decode() for name in sessions.scan_iter("pf1:*:dead", count=1000)]
    return dead + [name.decode() for name in queue.scan_iter("rq:failed:*") if queue.zcard(name.decode())]


class SpokenVectors:
    """Whose words each vector was made of."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = sorted(set(texts))
        self._directions = np.array([_direction(vector_of(text)) for text in self._texts])

    def people(self, vector: list[float]) -> set[Person] | None:
        """None: no text has this vector."""
        likeness = self._directions @ _direction(vector)
        best = int(likeness.argmax())
        return people_in(self._texts[best].encode()) if likeness[best] > _SAME else None


def look_into_vectors(url: str, embedded: Iterable[str]) -> dict[str, Seen]:
    """Every point of every collection: the text that its vector was made of is its owner's, and so is its payload."""
    spoken = SpokenVectors(embedded)
    by_collection: dict[str, Seen] = {}
    with httpx.Client(base_url=url, timeout=30) as client:
        for name in (one["name"] for one in client.get("/collections").json()["result"]["collections"]):
            seen = by_collection[name] = Seen()
            for point in _points(client, name):
                _look_at_point(point, spoken, seen)
    return by_collection


def _points(client: httpx.Client, collection: str) -> Iterator[dict[str, Any]]:
    body: dict[str, Any] = {"limit": 500, "with_payload": True, "with_vector": ["dense"]}
    while "offset" not in body or body["offset"] is not None:
        page = client.post(f"/collections/{collection}/points/scroll", json=body).raise_for_status().json()["result"]
        yield from page["points"]
        body["offset"] = page["next_page_offset"]


def _look_at_point(point: dict[str, Any], spoken: SpokenVectors, seen: Seen) -> None:
    payload = point["payload"]
    owner = Person(int(payload["tenant"].removeprefix("tenant")), int(payload["user"][1:]))
    seen.add(f"payload {point['id']}", json.dumps(payload).encode(), owner)
    if payload["session"] and owner_of_session(payload["tenant"], payload["session"]) != owner:
        seen.faults.append(f"point {point['id']} of {owner} is in {payload['session']}")
    people = spoken.people(point["vector"]["dense"])
    seen.with_words += bool(people)
    if people is None or people - {owner}:
        seen.faults.append(f"the vector of {point['id']} of {owner} is made of words of {people}")


def _direction(vector: list[float]) -> NDArray[np.float64]:
    given = np.asarray(vector, dtype=np.float64)
    found: NDArray[np.float64] = given / np.linalg.norm(given)
    return found
