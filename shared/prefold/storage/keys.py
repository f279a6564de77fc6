"""Every name in Redis. No other module spells a key.

A session lives in one of 256 partitions. The hash tag is the partition's, so one script can touch a session's
keys and its partition's streams, on one Redis or on a cluster. Tags are chosen so that partition ``i`` falls into
the slots ``64 i`` to ``64 i + 63``: partitions spread evenly over the slots, whatever the number of primaries.
"""

import binascii
import hashlib
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple
from urllib.parse import quote, unquote

from prefold.errors import InvalidInputError

__all__ = [
    "LAYOUT_KEY",
    "OF_MODEL_GATES",
    "OF_SESSIONS",
    "OF_SPENDING",
    "PARTITIONS",
    "PartitionKeys",
    "SessionKeys",
    "TenantKeys",
    "UserKeys",
    "life_label",
    "mark_beside",
    "metas_of",
    "model_gate_key",
    "packed_script_keys",
    "partition_of",
    "partition_tag",
    "read_keys",
    "record_keys",
    "session_of",
    "slot_of",
    "spending_of",
    "starts_key",
    "tenant_of",
]

PARTITIONS = 256
LAYOUT_KEY = "pf1:layout"
"""String: which form of all the others the store holds. It never ends."""
OF_SESSIONS = "pf1:{*}:s:*:*:[mt][eo][tm][ab]"
"""Pattern of the keys ``meta`` and ``tomb`` of every session."""
OF_SPENDING = "pf1:{t:*}:spending:*"
OF_MODEL_GATES = "pf1:model_gate:*"
"""Pattern of the days of every tenant."""
_SLOTS = 16384
_SESSIONS_AT_HAND = 8192
"""Sessions whose keys are remembered, for those that speak often: under a kilobyte each."""
_SUFFIX = "abcdefghijklmnopqrstuvwxyz"
_SAFE = "._@+=|~-"
_IS_SAFE = re.compile(r"[A-Za-z0-9._@+=|~-]+").fullmatch


def slot_of(tag: str) -> int:
    """Slot of a hash tag in a Redis Cluster: CRC16 (XMODEM) modulo 16384."""
    return binascii.crc_hqx(tag.encode(), 0) % _SLOTS


def slot_of_key(key: str | bytes) -> int:
    """Slot of a key: that of what stands between its first brace and the next closing one, else of the whole key."""
    name = key.encode() if isinstance(key, str) else key
    start = name.find(b"{")
    end = name.find(b"}", start + 1) if start >= 0 else -1
    return binascii.crc_hqx(name[start + 1 : end] if end > start + 1 else name, 0) % _SLOTS


@cache
def partition_tag(partition: int) -> str:
    """Hash tag of a partition: ``p`` and three digits, then the first letters that put it in its own slots."""
    if not 0 <= partition < PARTITIONS:
        raise InvalidInputError(f"there is no partition {partition}", field="partition")
    width = _SLOTS // PARTITIONS
    for letters in product(_SUFFIX, repeat=3):
        tag = f"p{partition:03d}{''.join(letters)}"
        if slot_of(tag) // width == partition:
            return tag
    raise AssertionError("a suffix exists for each partition")


def _segment(text: str) -> str:
    """One segment of a key: user text can hold no ``:``, brace or glob afterwards."""
    if not text:
        raise InvalidInputError("a name must not be empty")
    return text if _IS_SAFE(text) else quote(text, safe=_SAFE)


def partition_of(tenant: str, session: str) -> int:
    """Partition of a session: first byte of SHA-256 of ``tenant/session``."""
    return hashlib.sha256(f"{tenant}/{session}".encode()).digest()[0]


def life_label(tenant: str, session: str) -> str:
    """Name of a session in events and due entries; ``label:incarnation`` names one life of it."""
    return f"{_segment(tenant)}:{_segment(session)}"


def starts_key(kind: str, tenant: str, session: str, incarnation: str) -> str:
    """On the queue's Redis: the starts of this work that did not end well. ``*`` as kind and incarnation: a pattern."""
    return f"pf1:starts:{kind}:{life_label(tenant, session)}:{incarnation}"


def session_of(key: str) -> tuple[str, str]:
    """Tenant and session that a key of ``OF_SESSIONS`` belongs to."""
    _, _, _, tenant, session, _ = key.split(":")
    return unquote(tenant), unquote(session)


def tenant_of(key: str) -> str:
    """Tenant that a key of ``TenantKeys`` belongs to."""
    return unquote(key.removeprefix("pf1:{t:").partition("}")[0])


def spending_of(key: str) -> tuple[str, str]:
    """Tenant and day that a key of ``OF_SPENDING`` belongs to."""
    tag, _, day = key.removeprefix("pf1:{t:").partition("}:spending:")
    return unquote(tag), day


def model_gate_key(credential: str) -> str:
    """On the queue's Redis: what all workers know of a provider's key; ``credential`` is a hash of it."""
    return f"pf1:model_gate:{_segment(credential)}"


def metas_of(tenant: str) -> str:
    """Pattern of the ``meta`` of every session of a tenant."""
    return f"pf1:{{*}}:s:{_segment(tenant)}:*:meta"


def mark_beside(key: str) -> str:
    """Name of the mark in the partition of ``key``: what a batch of writes writes last, before it waits for replicas."""
    return f"{key[: key.index('}') + 1]}:mark"


def never_beside(key: str | bytes) -> str:
    """Name in the partition of ``key`` under which nothing is ever stored.

    A script that is given it too is refused as a whole (TRYAGAIN) while a cluster moves the partition's slot; without
    it, a script that renames or deletes can be broken off half-way.
    """
    name = key if isinstance(key, str) else key.decode()
    return f"{name[: name.index('}') + 1]}:never"


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """Names that a partition's sessions share."""

    events: str
    due: str
    dead: str
    """Work that was set aside."""
    dropped: str
    """How many events the cap dropped unread."""

    @classmethod
    @cache
    def of(cls, partition: int) -> "PartitionKeys":
        prefix = f"pf1:{{{partition_tag(partition)}}}"
        return cls(events=f"{prefix}:events", due=f"{prefix}:due", dead=f"{prefix}:dead", dropped=f"{prefix}:dropped")


@dataclass(frozen=True, slots=True)
class TenantKeys:
    """Names of what is counted for a tenant, without anybody's text, and of the turns that it publishes on a stream."""

    build_times: str
    """How long builds of its sessions took lately."""

    @classmethod
    def of(cls, tenant: str) -> "TenantKeys":
        return cls(build_times=f"pf1:{{t:{_segment(tenant)}}}:build_times")

    @classmethod
    def with_letters(cls) -> str:
        """Pattern of ``ingest_dead`` of every tenant."""
        return "pf1:{t:*}:ingest_dead"

    @property
    def quota(self) -> str:
        """What it has used of what it may use."""
        return self._beside("quota")

    @property
    def quota_sessions(self) -> str:
        """Its live sessions, by digests of their names."""
        return self._beside("quota_sessions")

    @property
    def ingest(self) -> str:
        """The stream to which backends publish turns: the one key of ours that others write."""
        return self._beside("ingest")

    @classmethod
    def with_ingest(cls) -> str:
        """Pattern of ``ingest``, and of what stands beside it, of every tenant."""
        return "pf1:{t:*}:ingest*"

    @property
    def ingest_lease(self) -> str:
        """Who reads that stream."""
        return self._beside("ingest_lease")

    @property
    def ingest_used(self) -> str:
        """There while the server's files may hold turns from that stream."""
        return self._beside("ingest_used")

    def letter_keys(self) -> tuple[str, ...]:
        """KEYS of the scripts of the stream's dead letters: the stream, when, why, the entries themselves."""
        return (self.ingest, *map(self._beside, ("ingest_dead", "ingest_dead_why", "ingest_dead_text")))

    def _beside(self, name: str) -> str:
        return f"{self.build_times.removesuffix('build_times')}{name}"

    def spending(self, day: str) -> str:
        """What model calls took on one day (UTC), ``20261130``."""
        return self._beside(f"spending:{day}")


@dataclass(frozen=True, slots=True)
class UserKeys:
    """Names of what is known of a user, and of the user's sessions. One slot: a script may touch all of them."""

    meta: str
    """Hash: version, epoch, erased."""
    facts: str
    """Hash: id of a fact to its row, history included."""
    profile: str
    """The rendering of what is known now: tokens, until when it holds (ms, 0: no end), the text, with spaces between."""
    suppressed: str
    """Sorted set: digests of what was deleted, which is not learnt again, by the version that deleted it; the newest."""
    unindexed: str
    """Sorted set: ids of facts whose vector is not as the row is, by the version that wrote the row."""
    sessions: str
    """Sorted set: the user's sessions, by when each was opened."""

    @classmethod
    def of(cls, tenant: str, user: str) -> "UserKeys":
        stem = f"pf1:{{u:{_segment(tenant)}:{_segment(user)}}}"
        return cls(
            meta=f"{stem}:meta",
            facts=f"{stem}:facts",
            profile=f"{stem}:profile",
            suppressed=f"{stem}:suppressed",
            unindexed=f"{stem}:unindexed",
            sessions=f"{stem}:sessions",
        )

    def script_keys(self) -> tuple[str, ...]:
        """KEYS of every script of a user."""
        return (self.meta, self.facts, self.profile, self.suppressed, self.unindexed, self.sessions)


class SessionKeys(NamedTuple):
    """Names of one session's keys, in the order in which every session script takes them."""

    meta: str
    tomb: str
    turns: str
    ids: str
    context: str
    next: str
    standby: str
    summaries: str
    events: str
    due: str
    label: str
    partition: int

    @classmethod
    def of(cls, tenant: str, session: str) -> "SessionKeys":
        partition = partition_of(tenant, session)
        shared = PartitionKeys.of(partition)
        label = life_label(tenant, session)
        stem = f"pf1:{{{partition_tag(partition)}}}:s:{label}"
        return cls._at(stem, label, partition, shared.events, shared.due)

    @classmethod
    def canary(cls, partition: int, name: str) -> "SessionKeys":
        """Keys in the slot of a partition that touch nothing of its sessions, its streams or its due work."""
        stem = f"pf1:{{{partition_tag(partition)}}}:canary:{_segment(name)}"
        return cls._at(stem, f"canary:{_segment(name)}", partition, f"{stem}:events", f"{stem}:due")

    @classmethod
    def _at(cls, stem: str, label: str, partition: int, events: str, due: str) -> "SessionKeys":
        return cls(
            meta=f"{stem}:meta",
            tomb=f"{stem}:tomb",
            turns=f"{stem}:turns",
            ids=f"{stem}:ids",
            context=f"{stem}:context",
            next=f"{stem}:next",
            standby=f"{stem}:standby",
            summaries=f"{stem}:summaries",
            events=events,
            due=due,
            label=label,
            partition=partition,
        )

    def script_keys(self) -> tuple[str, ...]:
        """KEYS of every session script."""
        return (
            self.meta,
            self.tomb,
            self.turns,
            self.ids,
            self.context,
            self.next,
            self.standby,
            self.summaries,
            self.events,
            self.due,
            self.segments,
        )

    @property
    def segments(self) -> str:
        """Summaries of runs of turns, by level and range."""
        return self.meta.removesuffix("meta") + "segments"

    @property
    def contexts(self) -> str:
        """Records of the last contexts that were assembled."""
        return self.meta.removesuffix("meta") + "contexts"

    @property
    def staged(self) -> str:
        """A copy of the log that is being made."""
        return self.meta.removesuffix("meta") + "staged"

    @property
    def staged_ids(self) -> str:
        """The same of ids; how far the copy is."""
        return self.meta.removesuffix("meta") + "staged_ids"

    def change_keys(self) -> tuple[str, ...]:
        """KEYS of the scripts that copy a log, or remove a session with its copies."""
        return (*self.script_keys(), self.staged, self.staged_ids, self.contexts)

    def erasable(self) -> tuple[str, ...]:
        """What an erasure removes: all of the session's own keys but the tombstone."""
        own = (self.meta, self.turns, self.ids, self.context, self.next, self.standby, self.summaries)
        return (*own, self.segments, self.contexts, self.staged, self.staged_ids)


_OF_SESSION = ("meta", "tomb", "turns", "ids", "context", "next", "standby", "summaries")
"""The session's own among ``SessionKeys.script_keys``, before those of its partition; ``segments`` comes last."""


@lru_cache(maxsize=_SESSIONS_AT_HAND)
def packed_script_keys(tenant: str, session: str) -> tuple[bytes, bytes]:
    """The session's label, and its ``script_keys`` as bulk strings of Redis's protocol, in a third of the time."""
    partition = partition_of(tenant, session)
    label = life_label(tenant, session).encode()
    prefix, shared = _packed_of_partition(partition)
    stem = prefix + label
    own = _packed_form(len(stem)) % ((stem,) * len(_OF_SESSION))
    return label, b"%b%b$%d\r\n%b:segments\r\n" % (own, shared, len(stem) + len(":segments"), stem)


@lru_cache(maxsize=_SESSIONS_AT_HAND)
def read_keys(tenant: str, session: str) -> tuple[bytes, bytes]:
    """Of a session's keys those that a context read needs: ``context`` and ``meta``."""
    stem = _packed_of_partition(partition_of(tenant, session))[0] + life_label(tenant, session).encode()
    return stem + b":context", stem + b":meta"


def record_keys(tenant: str, session: str) -> tuple[bytes, bytes]:
    """Those that the record of a read needs: ``meta`` and ``contexts``."""
    meta = read_keys(tenant, session)[1]
    return meta, meta.removesuffix(b"meta") + b"contexts"


@cache
def _packed_of_partition(partition: int) -> tuple[bytes, bytes]:
    """What the names of its sessions begin with, and its own keys."""
    keys = PartitionKeys.of(partition)
    shared = b"".join(b"$%d\r\n%b\r\n" % (len(name), name.encode()) for name in (keys.events, keys.due))
    return f"pf1:{{{partition_tag(partition)}}}:s:".encode(), shared


@lru_cache(maxsize=1024)
def _packed_form(length: int) -> bytes:
    """The session's own keys with a place for their stem, which is so long."""
    return b"".join(b"$%d\r\n%%b:%b\r\n" % (length + 1 + len(name), name.encode()) for name in _OF_SESSION)
