"""Puts a backup into place: files for a Redis that starts on them, collections of a running Qdrant, an embedded folder.

    restore.py BACKUP [--redis-dir DIR [--part 0]] [--qdrant http://node:6333 … ] [--vectors-dir DIR]

Checks every file against the manifest first. ``--redis-dir`` and ``--vectors-dir`` have to be empty or missing, and
their servers stopped; Qdrant's nodes run. Then start the servers and ONE gateway that no client reaches, run what this
prints, and only after that all the rest (docs/deployment.md).
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

_LOG_FOLDER = "appendonlydir"
_BASE = "appendonly.aof.1.base.rdb"
_MANIFEST = f"file {_BASE} seq 1 type b\n"
"""Redis 7 starts its append-only file from this base, as after a rewrite."""


def main(argv: Sequence[str]) -> int:
    """Restore what was asked for. SystemExit with a message when something is not as it must be."""
    arguments = _parse(argv)
    manifest = _checked(arguments.backup)
    if arguments.redis_dir:
        restore_sessions(arguments.backup / f"sessions-{arguments.part}.rdb", arguments.redis_dir)
    for node, url in enumerate(arguments.qdrant):
        restore_collections(url, os.environ.get("PREFOLD_QDRANT_API_KEY"), arguments.backup, node)
    if arguments.vectors_dir:
        restore_vectors(arguments.backup / "vectors.tar.gz", arguments.vectors_dir)
    restored = datetime.now(UTC).isoformat(timespec="milliseconds")
    sys.stdout.write(f"prefold reapply-erasures --since {manifest['begun']} --restored {restored} AUDITFILE …\n")
    return 0


def restore_sessions(rdb: Path, data: Path) -> None:
    """The base of an append-only file that the server loads at its start."""
    folder = _empty(data) / _LOG_FOLDER
    folder.mkdir(mode=0o750)
    shutil.copyfile(rdb, folder / _BASE)
    (folder / "appendonly.aof.manifest").write_text(_MANIFEST, "ascii")


def restore_collections(url: str, api_key: str | None, backup: Path, node: int) -> None:
    """What the snapshots of that node hold takes the place of what is there."""
    headers = {"api-key": api_key} if api_key else {}
    mark = f"qdrant-{node}-"
    with httpx.Client(base_url=url, headers=headers, timeout=3600, trust_env=False) as http:
        for snapshot in sorted(backup.glob(f"{mark}*.snapshot")):
            name = snapshot.name.removeprefix(mark).removesuffix(".snapshot")
            with snapshot.open("rb") as body:
                place = f"/collections/{name}/snapshots/upload"
                asked = {"priority": "snapshot", "wait": "true"}
                http.post(place, params=asked, files={"snapshot": (snapshot.name, body)}).raise_for_status()


def restore_vectors(archive: Path, data: Path) -> None:
    """The folder of an embedded store."""
    _empty(data).rmdir()
    with tarfile.open(archive) as packed:
        packed.extractall(data.parent, filter="data", members=_renamed(packed, data.name))


def _renamed(packed: tarfile.TarFile, name: str) -> list[tarfile.TarInfo]:
    return [one.replace(name=name + one.name.removeprefix("vectors"), deep=False) for one in packed.getmembers()]


def _checked(backup: Path) -> dict[str, Any]:
    if not (backup / "manifest.json").is_file():
        raise SystemExit(f"restore: {backup} has no manifest.json: it is no backup, or one that was not finished")
    manifest: dict[str, Any] = json.loads((backup / "manifest.json").read_text("utf-8"))
    for name, told in manifest["files"].items():
        with (backup / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != told["sha256"]:
                raise SystemExit(f"restore: {name} is not as it was written")
    return manifest


def _empty(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True, mode=0o750)
    if any(folder.iterdir()):
        raise SystemExit(f"restore: {folder} is not empty: move away what is there")
    return folder


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="restore.py", description="Restores sessions and vectors.")
    parser.add_argument("backup", type=Path, help="folder of one backup")
    parser.add_argument("--redis-dir", type=Path, metavar="DIR", help="`dir` of the sessions' Redis, which is stopped")
    parser.add_argument("--part", type=int, default=0, help="which primary of a cluster that Redis is")
    parser.add_argument(
        "--qdrant", action="append", default=[], metavar="URL", help="the nodes, in the order of the backup"
    )
    parser.add_argument("--vectors-dir", type=Path, metavar="DIR", help="folder of an embedded store, which is stopped")
    parsed = parser.parse_args(argv)
    if not (parsed.redis_dir or parsed.qdrant or parsed.vectors_dir):
        parser.error("nothing to restore to: give --redis-dir, --qdrant or --vectors-dir")
    return parsed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
