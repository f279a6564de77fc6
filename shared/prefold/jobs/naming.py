"""Jobs that name a session: counted, and made to name it no more.

A job is a hint, so the row of a session can be taken out of it while it waits, runs or lies failed: the other rows
stay. A worker that has read the job already goes on with what it read; its work is refused by the session's state.
"""

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from redis import Redis

from prefold.storage.keys import starts_key

_PAGE = 500
_JOBS = "rq:job:*"

# KEYS: the job, its results. ARGV: what its payload was, what it is to be. Nothing is written that is not there.
_REWRITE = """
if redis.call('HGET', KEYS[1], 'data') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'data', ARGV[2])
redis.call('HDEL', KEYS[1], 'exc_info')
redis.call('UNLINK', KEYS[2])
return 1
"""


@dataclass(frozen=True, slots=True)
class NamedJob:
    """A job with a row of the session."""

    id: str
    data: bytes
    """As it is stored."""
    call: list[Any]
    """Function, instance, arguments, named arguments."""


def jobs_naming(connection: Redis, tenant: str, session: str) -> Iterator[NamedJob]:
    """Every job that names the session, waiting, running, failed or left over."""
    for keys in _pages(connection, _JOBS):
        with connection.pipeline(transaction=False) as pipe:
            jobs = [key for key in keys if key.count(b":") == _JOBS.count(":")]
            for key in jobs:
                pipe.hget(key.decode(), "data")
            for key, data in zip(jobs, pipe.execute(raise_on_error=False), strict=True):
                call = _call_of(data)
                if call is not None and any(_is_of(row, tenant, session) for row in _rows(call)):
                    yield NamedJob(key.decode().rpartition(":")[2], data, call)


def starts_naming(connection: Redis, tenant: str, session: str) -> list[bytes]:
    """Names of the keys that count the session's starts."""
    pattern = starts_key("*", tenant, session, "*")
    return [key for keys in _pages(connection, pattern) for key in keys]


def take_out(connection: Redis, job: NamedJob, tenant: str, session: str) -> bool:
    """Takes the session's rows out of the job, and what failed runs of it left; False: it has changed or is gone."""
    left = [row for row in _rows(job.call) if not _is_of(row, tenant, session)]
    call = [*job.call[:2], [left, *job.call[2][1:]], *job.call[3:]]
    data = zlib.compress(json.dumps(call).encode())
    keys = (f"rq:job:{job.id}", f"rq:results:{job.id}")
    return bool(connection.eval(_REWRITE, len(keys), *keys, job.data, data))


def _pages(connection: Redis, pattern: str) -> Iterator[list[bytes]]:
    cursor: Any = 0
    while True:
        page: Any = connection.scan(cursor, match=pattern, count=_PAGE)
        cursor, keys = page
        yield keys
        if not int(cursor):
            return


def _call_of(data: object) -> list[Any] | None:
    """The stored call; None for what is no job of ours."""
    if not isinstance(data, bytes):
        return None
    try:
        call = json.loads(zlib.decompress(data))
    except (zlib.error, ValueError):
        return None
    return call if isinstance(call, list) and len(call) == 4 else None


def _rows(call: list[Any]) -> list[Any]:
    arguments = call[2]
    rows = arguments[0] if isinstance(arguments, list) and arguments else None
    return rows if isinstance(rows, list) else []


def _is_of(row: object, tenant: str, session: str) -> bool:
    return isinstance(row, list) and row[:2] == [tenant, session]
