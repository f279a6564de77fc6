"""What a session server has to be set up for, so that what we promise holds; and what to do where it does not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from prefold.storage.limits import SHARED_BYTES
from prefold.storage.server import ServerFacts

if TYPE_CHECKING:
    from prefold.config.settings import Durability

__all__ = ["OLDEST_VERSION", "Promise", "State", "promises_of", "undurable"]

State = Literal["ok", "wrong", "unknown", "note"]
"""``note``: worth knowing, and no promise is broken by it."""
OLDEST_VERSION = (7, 0)


@dataclass(frozen=True, slots=True)
class Promise:
    """One thing that has to hold of a server."""

    name: str
    state: State
    found: str
    mend: str = ""
    """What an operator does about it; empty where nothing is to be done."""
    carries: tuple["Durability", ...] = ()
    """Durability classes that do not hold without it."""


def promises_of(
    facts: ServerFacts, durability: "Durability", replicas: int, *, nearly_full: float = 0.9
) -> list[Promise]:
    """All that has to hold of a session server for that class, with ``replicas`` to confirm each write (0: none)."""
    found = [*_server(facts), *_file(facts, durability), *_memory(facts, nearly_full), _replicas(facts, replicas)]
    return [one for one in found if one is not None]


def undurable(promises: Sequence[Promise], durability: "Durability") -> list[Promise]:
    """Those that are not known to hold, though the class needs them."""
    return [one for one in promises if durability in one.carries and one.state in ("wrong", "unknown")]


def _server(facts: ServerFacts) -> Iterator[Promise | None]:
    both: tuple[Durability, ...] = ("durable", "fast")
    is_new_enough = _numbers(facts.version) >= OLDEST_VERSION
    yield Promise(
        "version",
        "ok" if is_new_enough else "wrong",
        facts.version,
        "" if is_new_enough else "run Redis 7.0 or later, or Valkey",
        both,
    )
    yield Promise(
        "role",
        "ok" if facts.is_primary else "wrong",
        "primary" if facts.is_primary else "replica",
        "" if facts.is_primary else "let PREFOLD_REDIS_URL name the primary: a replica takes no writes",
        both,
    )
    if facts.cluster_state is not None:
        is_whole = facts.cluster_state == "ok"
        mend = "" if is_whole else "bring its servers back: slots that nobody serves take no turns"
        yield Promise("cluster", "ok" if is_whole else "wrong", facts.cluster_state, mend)


def _file(facts: ServerFacts, durability: "Durability") -> Iterator[Promise | None]:
    # Without a log a `fast` server loses all at a restart, which the class allows; it is said all the same.
    yield _setting(facts, "appendonly", "yes", durability)
    yield _setting(facts, "appendfsync", "always", durability)
    yield _setting(facts, "no-appendfsync-on-rewrite", "no", durability)
    yield _status(facts, "aof_last_write_status", "log writes", "make room on its disk: until then no turn is taken")
    yield _status(
        facts,
        "aof_last_bgrewrite_status",
        "log rewrites",
        "see the server's log: what was erased stays in the file until a rewrite",
    )
    lazy = facts.setting("lazyfree-lazy-server-del")
    if lazy == "no":
        mend = "CONFIG SET lazyfree-lazy-server-del yes: a swap frees a long context, and everybody waits for it"
        yield Promise("lazyfree-lazy-server-del", "note", lazy, mend)
    nodes = facts.setting("stream-node-max-bytes")
    if nodes is not None and not 0 < int(nodes) <= SHARED_BYTES:
        mend = f"CONFIG SET stream-node-max-bytes 8192: with more than {SHARED_BYTES} a rewind leaves words in memory"
        yield Promise("stream-node-max-bytes", "wrong", nodes, mend)


def _status(facts: ServerFacts, field: str, name: str, mend: str) -> Promise | None:
    if not int(facts.info.get("aof_enabled", 0)) or field not in facts.info:
        return None
    value = str(facts.info[field])
    return Promise(name, "ok", value) if value == "ok" else Promise(name, "wrong", value, mend)


def _setting(facts: ServerFacts, name: str, wanted: str, durability: "Durability") -> Promise:
    value = facts.setting(name)
    if value is None:
        mend = f"let our user ask (ACL: +config|get), or make sure of it yourself: {name} {wanted}"
        return Promise(name, "unknown" if durability == "durable" else "note", "not readable", mend, ("durable",))
    if value == wanted:
        return Promise(name, "ok", value, "", ("durable",))
    state: State = "wrong" if durability == "durable" else "note"
    return Promise(name, state, value, f"CONFIG SET {name} {wanted}, and the same in the server's file", ("durable",))


def _memory(facts: ServerFacts, nearly_full: float) -> Iterator[Promise | None]:
    policy = str(facts.info.get("maxmemory_policy", facts.setting("maxmemory-policy") or ""))
    keeps = policy == "noeviction"
    if not policy:
        yield Promise("maxmemory-policy", "unknown", "not readable", "it must be noeviction", ("durable",))
    elif keeps or facts.maxmemory:
        mend = "" if keeps else "CONFIG SET maxmemory-policy noeviction: an evicted key is a lost conversation"
        yield Promise("maxmemory-policy", "ok" if keeps else "wrong", policy, mend, ("durable",))
    else:
        yield Promise(
            "maxmemory-policy", "note", policy, "set it to noeviction before you set maxmemory, or sessions are evicted"
        )
    if not facts.maxmemory:
        yield Promise("memory", "note", "no bound", "set maxmemory, so that turns are refused before the machine swaps")
        return
    is_full = facts.used_share >= nearly_full
    mend = "raise maxmemory or erase sessions: new turns are refused" if is_full else ""
    yield Promise("memory", "wrong" if is_full else "ok", f"{facts.used_share:.0%} of {facts.maxmemory} bytes", mend)


def _replicas(facts: ServerFacts, needed: int) -> Promise:
    found = f"{facts.replicas} connected, {needed} to confirm each write"
    if facts.replicas >= needed:
        return Promise("replicas", "ok", found)
    return Promise(
        "replicas", "wrong", found, "start or reconnect the replicas: until then turns get 503 not_replicated"
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
