"""The durable record of which collections there are and in which folder each one is."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prefold.errors import ConfigurationError
from prefold.vectorstore.layout import Layout, parse_layout
from prefold.vectorstore.rejections import RejectedError

_FILE: Final = "collections.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One collection of the record."""

    folder: str
    layout: Layout


def read_catalog(data_dir: Path) -> dict[str, Entry]:
    """The collections by name; none for a new folder. Raises ``ConfigurationError`` for a record we cannot read."""
    path = data_dir / _FILE
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    try:
        record = json.loads(text)
        if record["format"] != _FORMAT:
            raise ConfigurationError(f"{path} has format {record['format']}, this version knows {_FORMAT}")
        return {name: Entry(item["folder"], parse_layout(item)) for name, item in record["collections"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RejectedError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error!r}") from error


def write_catalog(data_dir: Path, entries: Mapping[str, Entry]) -> None:
    """Replaces the record as a whole: after a crash there is the old one or the new one."""
    collections = {name: {"folder": entry.folder, **entry.layout.to_json()} for name, entry in entries.items()}
    temporary = data_dir / f"{_FILE}.new"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump({"format": _FORMAT, "collections": collections}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(data_dir / _FILE)
    sync_folder(data_dir)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
