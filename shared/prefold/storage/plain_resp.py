"""What we use of hiredis, in Python: commands as RESP2 bytes, and replies out of a stream of bytes."""

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Reader", "pack_command"]

_SHORT = 64


def pack_command(command: Sequence[str | bytes | int]) -> bytes:
    """One command on the wire."""
    parts = [b"*%d\r\n" % len(command)]
    for argument in command:
        value = argument if isinstance(argument, bytes) else str(argument).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(value), value))
    return b"".join(parts)


class _UnfinishedError(Exception):
    pass


class Reader:
    """Replies as they come in. Values are bytes and ints, None for nothing, lists; errors stand as exceptions."""

    def __init__(self, *, replyError: Callable[[str], Exception]) -> None:  # noqa: N803  # hiredis' name
        self._error = replyError
        self._buffer = bytearray()
        self._at = 0
        self._needed = 0

    def feed(self, data: bytes) -> None:
        """More of the stream."""
        self._buffer += data

    def gets(self) -> Any:
        """The next reply; False when it is not whole yet."""
        if len(self._buffer) < self._needed:
            return False  # the rest of a long value is under way: no use in reading its head again
        self._at = self._needed = 0
        try:
            reply = self._read()
        except _UnfinishedError:
            return False
        del self._buffer[: self._at]
        return reply

    def _read(self) -> Any:
        end = self._buffer.find(b"\r\n", self._at)
        if end < 0:
            raise _UnfinishedError
        kind, line = self._buffer[self._at], bytes(self._buffer[self._at + 1 : end])
        self._at = end + 2
        match kind:
            case 0x2B:  # +
                return line
            case 0x3A:  # :
                return int(line)
            case 0x24:  # $
                return self._bulk(int(line))
            case 0x2A:  # *
                return None if line == b"-1" else [self._read() for _ in range(int(line))]
            case 0x2D:  # -
                return self._error(line.decode("utf-8", "replace"))
        raise ValueError(f"not a reply of Redis: {bytes(self._buffer[:_SHORT])!r}")

    def _bulk(self, size: int) -> bytes | None:
        if size < 0:
            return None
        start, self._at = self._at, self._at + size + 2
        if len(self._buffer) < self._at:
            self._needed = self._at
            raise _UnfinishedError
        return bytes(memoryview(self._buffer)[start : start + size])
