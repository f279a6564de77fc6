"""Takes a backup: the sessions' Redis over the network, Qdrant's collections as snapshots, or an embedded store's folder.

    PREFOLD_REDIS_URL=redis://backup:…@host:6379 backup.py FOLDER (--qdrant http://node:6333 … | --vectors-dir DIR)

Makes FOLDER/TIME with one file a part and ``manifest.json``, which says when the backup was begun: `prefold
reapply-erasures --since` wants that. A backup that fails leaves no folder. First the sessions, then the vectors; embed
and memory workers stand still meanwhile (docs/deployment.md tells why). Each primary of a cluster is one
``--sessions``. Nothing is written on the servers' disks. Runs in Prefold's environment.
"""

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import socket
import ssl
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import SplitResult, unquote, urlsplit

import httpx

_BLOCK = 1 << 20
_PATIENCE_SECONDS = 600.0
"""Between two signs of life: a server forks, and writes a long file, before the first byte comes."""
_MARK_BYTES = 40
_PREFIXES = ("turns_", "memory_")
"""Of our collections."""


def main(argv: Sequence[str]) -> int:
    """Write the backup and say where; SystemExit with a message when a part of it could not be had: then nothing stays."""
    arguments = _parse(argv)
    begun = datetime.now(UTC)
    folder: Path = arguments.folder / begun.strftime("%Y%m%dT%H%M%S.%fZ")
    try:
        folder.mkdir(parents=True, mode=0o700)
        with _gone_unless_whole(folder):
            count = _save(arguments, begun, folder)
    except OSError as error:
        raise SystemExit(f"backup: {error}") from error
    _note(folder, count)
    sys.stdout.write(f"{folder}\n")
    return 0


@contextmanager
def _gone_unless_whole(folder: Path) -> Iterator[None]:
    """Half a backup is none."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _save(arguments: argparse.Namespace, begun: datetime, folder: Path) -> int:
    """How many files the backup has, the manifest not among them."""
    files: list[Path] = []
    for number, url in enumerate(arguments.sessions or [os.environ["PREFOLD_REDIS_URL"]]):
        files.append(save_sessions(url, folder / f"sessions-{number}.rdb"))
    for number, url in enumerate(arguments.qdrant):
        files += save_collections(url, os.environ.get("PREFOLD_QDRANT_API_KEY"), folder, number)
    if arguments.vectors_dir:
        files.append(save_vectors(arguments.vectors_dir, folder / "vectors.tar.gz"))
    manifest = {
        "begun": begun.isoformat(timespec="milliseconds"),
        "files": {file.name: {"bytes": file.stat().st_size, "sha256": _digest(file)} for file in files},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    return len(files)


def save_sessions(url: str, target: Path) -> Path:
    """The server's data at one moment, as an RDB file. It is sent as to a replica, and nothing more is sent after it."""
    with _connected(urlsplit(url)) as link:
        for command in (("REPLCONF", "capa", "eof"), ("REPLCONF", "rdb-only", "1")):
            link.ask(*command)
        link.send("SYNC")
        header = link.line()
        while not header:  # signs of life
            header = link.line()
        if not header.startswith(b"$"):
            raise SystemExit(f"backup: the session store refuses: {header.decode('utf-8', 'replace')}")
        with _whole_file(target) as out:
            if header.startswith(b"$EOF:"):
                link.copy_to_mark(out, header.removeprefix(b"$EOF:"))
            else:
                link.copy(out, int(header[1:]))
    with target.open("rb") as saved:
        if saved.read(5) != b"REDIS":
            raise SystemExit(f"backup: {target} is no RDB file")
    return target


def save_collections(url: str, api_key: str | None, folder: Path, node: int) -> Iterator[Path]:
    """A snapshot of each of our collections on one node, which holds that node's shards."""
    headers = {"api-key": api_key} if api_key else {}
    asking = httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE_SECONDS, trust_env=False)
    with _told_of_qdrant(url), asking as http:
        found = http.get("/collections").raise_for_status().json()["result"]["collections"]
        for name in sorted(one["name"] for one in found if one["name"].startswith(_PREFIXES)):
            place = f"/collections/{name}/snapshots"
            made: dict[str, Any] = http.post(place, params={"wait": "true"}).raise_for_status().json()["result"]
            target = folder / f"qdrant-{node}-{name}.snapshot"
            try:
                with http.stream("GET", f"{place}/{made['name']}") as body, _whole_file(target) as out:
                    for block in body.raise_for_status().iter_bytes(_BLOCK):
                        out.write(block)
            finally:
                http.delete(f"{place}/{made['name']}").raise_for_status()
            if made.get("checksum") not in (None, _digest(target)):
                raise SystemExit(f"backup: {target} came damaged")
            yield target


@contextmanager
def _told_of_qdrant(url: str) -> Iterator[None]:
    """SystemExit that names the node, where it cannot be reached, refuses, or is no Qdrant."""
    node = urlsplit(url).netloc.rpartition("@")[2] or url
    try:
        yield
    except httpx.HTTPStatusError as error:
        answer, asked = error.response, error.request
        told = f"{answer.status_code} {answer.reason_phrase}"
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            told += "; its key goes into PREFOLD_QDRANT_API_KEY"
        raise SystemExit(f"backup: {node} answers {asked.method} {asked.url.path} with {told}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SystemExit(f"backup: {node} cannot be reached: {str(error) or type(error).__name__}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"backup: {node} does not answer as Qdrant does") from error


def save_vectors(data_dir: Path, target: Path) -> Path:
    """The folder of an embedded store (`prefold vectors`), which has to be stopped: else SystemExit."""
    with (data_dir / "owner.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"backup: stop `prefold vectors` first: {data_dir} is in use") from None
        with _whole_file(target) as out, tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
            archive.add(data_dir, arcname="vectors")
    return target


class _Link:
    """A connection to a Redis server, read byte by byte."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb", buffering=_BLOCK)

    def send(self, *words: str) -> None:
        parts = [b"$%d\r\n%b\r\n" % (len(word.encode()), word.encode()) for word in words]
        self._connection.sendall(b"*%d\r\n" % len(words) + b"".join(parts))

    def ask(self, *words: str) -> None:
        """SystemExit where the server refuses."""
        self.send(*words)
        if (reply := self.line()).startswith(b"-"):
            raise SystemExit(f"backup: {words[0]} is refused: {reply.decode('utf-8', 'replace')}")

    def line(self) -> bytes:
        line = self._stream.readline()
        if not line:
            raise SystemExit("backup: the session store has closed the connection")
        return line.rstrip(b"\r\n")

    def copy(self, out: BinaryIO, left: int) -> None:
        while left:
            out.write(block := self._block(min(left, _BLOCK)))
            left -= len(block)

    def copy_to_mark(self, out: BinaryIO, mark: bytes) -> None:
        """What stands before ``mark``, which the server has drawn by lot and sends as the last bytes."""
        kept = b""
        while not kept.endswith(mark):
            kept += self._block(_BLOCK)
            if len(kept) > _MARK_BYTES and not kept.endswith(mark):
                out.write(kept[:-_MARK_BYTES])
                kept = kept[-_MARK_BYTES:]
        out.write(kept.removesuffix(mark))

    def _block(self, most: int) -> bytes:
        block = self._stream.read1(most)  # type: ignore[attr-defined]  # a buffered reader, which makefile does not say
        if not block:
            raise SystemExit("backup: the session store has broken off")
        return bytes(block)


@contextmanager
def _connected(url: SplitResult) -> Iterator[_Link]:
    with _socket(url) as connection:
        link = _Link(connection)
        if url.password:
            link.ask("AUTH", *([unquote(url.username)] if url.username else []), unquote(url.password))
        yield link


def _socket(url: SplitResult) -> socket.socket:
    if url.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_PATIENCE_SECONDS)
        connection.connect(url.path)
        return connection
    host, port = url.hostname or "127.0.0.1", url.port or 6379
    try:
        connection = socket.create_connection((host, port), _PATIENCE_SECONDS)
    except OSError as error:
        raise SystemExit(f"backup: the session store {host}:{port} cannot be reached: {error}") from error
    return (
        ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        if url.scheme == "rediss"
        else connection
    )


@contextmanager
def _whole_file(target: Path) -> Iterator[BinaryIO]:
    """There in the end, on disk and whole, or not at all."""
    part = target.with_suffix(".part")
    with part.open("xb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())
    part.rename(target)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _note(folder: Path, count: int) -> None:
    audit = os.environ.get("PREFOLD_AUDIT_FILE")
    if audit:
        from prefold.audit import AuditLog

        subject = {"backup": folder.name, "files": str(count)}
        AuditLog(Path(audit), role="backup").note("backup_taken", tenant="", subject=subject)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="backup.py", description="Backs up sessions and vectors.")
    parser.add_argument("folder", type=Path, help="where the backups are")
    parser.add_argument("--sessions", action="append", default=[], metavar="URL", help="else PREFOLD_REDIS_URL")
    parser.add_argument(
        "--qdrant", action="append", default=[], metavar="URL", help="a node; its key: PREFOLD_QDRANT_API_KEY"
    )
    parser.add_argument("--vectors-dir", type=Path, metavar="DIR", help="folder of an embedded store, which is stopped")
    parser.add_argument("--without-vectors", action="store_true", help="sessions only: a restore then recalls nothing")
    parsed = parser.parse_args(argv)
    if bool(parsed.qdrant or parsed.vectors_dir) == parsed.without_vectors:
        parser.error("where are the vectors? give either --qdrant or --vectors-dir, or else --without-vectors")
    if not (parsed.sessions or os.environ.get("PREFOLD_REDIS_URL")):
        parser.error("where are the sessions? give --sessions, or set PREFOLD_REDIS_URL")
    if parsed.vectors_dir and not parsed.vectors_dir.is_dir():
        parser.error(f"--vectors-dir: there is no folder {parsed.vectors_dir}")
    return parsed


if __name__ == "__main__":
    from prefold.config.logs import configure_logging
    from prefold.config.settings import ProcessSettings

    configure_logging("backup", ProcessSettings())  # what is logged does not go where the folder is told
    sys.exit(main(sys.argv[1:]))
