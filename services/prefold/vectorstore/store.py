"""All collections of one data folder."""

import re
import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from prefold.errors import ConfigurationError
from prefold.vectorstore.catalog import Entry, read_catalog, sync_folder, write_catalog
from prefold.vectorstore.collection import Collection
from prefold.vectorstore.identifiers import collection_name
from prefold.vectorstore.layout import Layout
from prefold.vectorstore.ownership import owned
from prefold.vectorstore.rejections import collection_exists, no_collection

log = structlog.get_logger()

_OUR_FOLDER: Final = re.compile(r"c-[0-9a-f]{32}")


class Store:
    """The collections of a folder. The record says what exists; a folder it does not name is a leftover."""

    def __init__(self, data_dir: Path, entries: dict[str, Entry], collections: dict[str, Collection]) -> None:
        self._data_dir = data_dir
        self._entries = entries
        self._collections = collections

    def names(self) -> list[str]:
        """The collections' names, sorted."""
        return sorted(self._collections)

    def collections(self) -> list[Collection]:
        """All collections."""
        return list(self._collections.values())

    def get(self, name: str) -> Collection:
        """A collection by name."""
        collection = self._collections.get(name)
        if collection is None:
            raise no_collection(name)
        return collection

    def create(self, name: str, layout: Layout) -> None:
        """A new collection: the shard first, then the record, so that the record never names what is not there."""
        if collection_name(name) in self._collections:
            raise collection_exists(name)
        folder = f"c-{uuid.uuid4().hex}"
        collection = Collection.create(name, layout, self._data_dir / folder)
        sync_folder(self._data_dir)
        entries = {**self._entries, name: Entry(folder, layout)}
        write_catalog(self._data_dir, entries)
        self._entries = entries
        self._collections[name] = collection
        log.info("collection_created", collection=name)

    async def delete(self, name: str) -> bool:
        """Deletes a collection: from the record first. False if there is none."""
        if name not in self._collections:
            return False
        entries = dict(self._entries)
        folder = entries.pop(name).folder
        write_catalog(self._data_dir, entries)
        self._entries = entries
        await self._collections.pop(name).close()
        shutil.rmtree(self._data_dir / folder, ignore_errors=True)
        log.info("collection_deleted", collection=name)
        return True

    async def close(self) -> None:
        """Flushes and closes all."""
        for collection in self.collections():
            await collection.close()


@asynccontextmanager
async def opened_store(data_dir: Path) -> AsyncIterator[Store]:
    """The store of a folder, owned until the end, then flushed and closed.

    Raises ``ConfigurationError`` when another process owns the folder or a shard does not load: leaving one out
    would look like a memory that is gone.
    """
    with owned(data_dir):
        entries = read_catalog(data_dir)
        _remove_leftovers(data_dir, {entry.folder for entry in entries.values()})
        store = Store(data_dir, entries, {})
        try:
            store = Store(data_dir, entries, {name: _load(name, entry, data_dir) for name, entry in entries.items()})
            yield store
        finally:
            await store.close()


def _load(name: str, entry: Entry, data_dir: Path) -> Collection:
    folder = data_dir / entry.folder
    try:
        return Collection.load(name, entry.layout, folder)
    except Exception as error:  # qdrant-edge raises bare Exceptions
        raise ConfigurationError(
            f"collection {name} in {folder} does not load: {error}. Restore the folder from a backup, or move it "
            f"away with its entry in collections.json and embed its turns again"
        ) from error


def _remove_leftovers(data_dir: Path, known: set[str]) -> None:
    for folder in data_dir.iterdir():
        if _OUR_FOLDER.fullmatch(folder.name) and folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)
            log.warning("leftover_removed", folder=folder.name)
