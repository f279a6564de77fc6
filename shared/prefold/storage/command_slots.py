"""Which slot of a cluster a command belongs to."""

from collections.abc import Sequence
from typing import Any

from redis.exceptions import DataError

from prefold.storage.keys import never_beside, slot_of_key

__all__ = ["Command", "guarded", "slot_of_command"]

Command = tuple[Any, ...]
"""Name and arguments, as redis-py hands them on."""

_EVAL = {"EVAL", "EVALSHA"}
_STREAMS = {"XREAD", "XREADGROUP"}
_EVERY_KEY = {"DEL", "EXISTS", "MGET", "TOUCH", "UNLINK"}
_TWO_KEYS = {"COPY", "RENAME", "RENAMENX"}
_ONE_SERVER = {
    "ACL", "ASKING", "AUTH", "BGREWRITEAOF", "BGSAVE", "CLIENT", "CLUSTER", "COMMAND", "COMMANDLOG", "CONFIG",
    "DBSIZE", "DEBUG", "ECHO", "FLUSHALL", "FLUSHDB", "FUNCTION", "INFO", "KEYS", "LASTSAVE", "LATENCY", "MONITOR",
    "MULTI", "EXEC", "PING", "PUBLISH", "RANDOMKEY", "REPLICAOF", "ROLE", "SAVE", "SCAN", "SCRIPT", "SELECT",
    "SHUTDOWN", "SLOWLOG", "TIME", "WAIT", "WAITAOF",
}  # fmt: skip


def slot_of_command(command: Sequence[Any]) -> int | None:
    """The slot of all its keys, None for a command about one server.

    Raises ``DataError`` when the keys lie in several slots: no server would take that.
    """
    keys = _keys_of(command)
    slots = {slot_of_key(key) for key in keys}
    if len(slots) > 1:
        raise DataError(f"{command[0]} names keys of {len(slots)} slots")
    return slots.pop() if slots else None


def guarded(command: Command) -> Command:
    """The command; a script is also given the key that never exists (see ``never_beside``)."""
    if command[0] not in _EVAL:
        return command
    name, script, count, *rest = command
    count = int(count)
    if not count:
        raise DataError("a script without keys belongs to no server of a cluster")
    return (name, script, count + 1, *rest[:count], never_beside(rest[0]), *rest[count:])


def _keys_of(command: Sequence[Any]) -> Sequence[str | bytes]:
    name, *arguments = command
    verb = name.split(" ", 1)[0].upper()
    if verb in _ONE_SERVER or not arguments:
        return ()
    if verb in _EVAL:
        return arguments[2 : 2 + int(arguments[1])]
    if verb in _STREAMS:
        return _streams(arguments)
    if verb in _EVERY_KEY:
        return arguments
    return arguments[: 2 if verb in _TWO_KEYS else 1]


def _streams(arguments: Sequence[Any]) -> Sequence[str | bytes]:
    start = next(i for i, one in enumerate(arguments) if one in ("STREAMS", b"STREAMS")) + 1
    return arguments[start : start + (len(arguments) - start) // 2]
