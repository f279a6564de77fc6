"""Looks for strings in everything that a deployment stores: keys, logs of commands, files, vectors."""

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from redis import Redis


def uncompressed(server: Redis) -> None:
    """Makes dumps and files of this server show every byte as it is."""
    server.config_set("rdbcompression", "no")


def in_keys(server: Redis, texts: Iterable[bytes]) -> dict[bytes, list[str]]:
    """Each text that is found, with the keys whose dump or name has it; RQ's jobs are unpacked."""
    wanted = list(texts)
    found: dict[bytes, list[str]] = {}
    for name in server.scan_iter(count=1000):
        everything = name + _content(server, name)
        for text in wanted:
            if text in everything:
                found.setdefault(text, []).append(name.decode())
    return found


def _content(server: Redis, name: bytes) -> bytes:
    content = server.dump(name) or b""
    packed: Any = server.hget(name.decode(), "data") if name.startswith(b"rq:job:") else None
    if packed:
        content += zlib.decompress(packed)
    return content


def in_readable_values(stored: dict[str, tuple[str, Any, int]], texts: Iterable[str]) -> dict[str, list[str]]:
    """The same in what commands read: without the bytes that a stream keeps of deleted entries."""
    wanted = list(texts)
    found: dict[str, list[str]] = {}
    for name, value in stored.items():
        everything = f"{name} {value!r}"
        for text in wanted:
            if text in everything:
                found.setdefault(text, []).append(name)
    return found


def in_command_logs(server: Redis, texts: Iterable[bytes]) -> list[bytes]:
    """Texts in the server's logs of slow and large commands."""
    ask: Any = server.execute_command
    logs = repr([ask("COMMANDLOG", "GET", -1, kind) for kind in ("slow", "large-request")])
    return [text for text in texts if text.decode() in logs]


def in_files(folder: Path, texts: Iterable[bytes]) -> dict[bytes, list[str]]:
    """Each text that is found, with the files that have it, by their path in the folder."""
    wanted = list(texts)
    found: dict[bytes, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        try:
            content = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:  # a rewrite has put another in its place
            continue
        for text in wanted:
            if text in content:
                found.setdefault(text, []).append(str(path.relative_to(folder)))
    return found
