"""Where the parts of a running ``prefold up`` are: a file in its data folder, for commands on the same machine."""

import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson
from pydantic import SecretStr

from prefold.config.settings import DataDirSettings

__all__ = ["Addresses", "located"]

S = TypeVar("S", bound=DataDirSettings)

_FILE = "addresses.json"


@dataclass(frozen=True, slots=True)
class Addresses:
    """As the processes of that stack were given them."""

    redis_url: str
    queue_url: str
    qdrant_url: str
    qdrant_api_key: str | None = field(default=None, repr=False)
    gateway_url: str = ""

    def write(self, data_dir: Path) -> None:
        """Only this user can read it: a key is in it."""
        descriptor = os.open(data_dir / _FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(orjson.dumps(asdict(self)))

    @classmethod
    def read(cls, data_dir: Path) -> Self | None:
        """None when no stack was started there, or it has stopped in order."""
        with suppress(OSError, orjson.JSONDecodeError, TypeError):
            return cls(**orjson.loads((data_dir / _FILE).read_bytes()))
        return None

    @staticmethod
    def remove(data_dir: Path) -> None:
        """Twice is harmless."""
        with suppress(OSError):
            (data_dir / _FILE).unlink(missing_ok=True)

    def settings(self) -> dict[str, Any]:
        """Values of the settings of the same names."""
        key = SecretStr(self.qdrant_api_key) if self.qdrant_api_key else None
        return {**asdict(self), "qdrant_api_key": key}


def located(settings: S) -> S:
    """The settings with the addresses of a stack that runs on the data folder, where none are set."""
    running = Addresses.read(settings.data_dir)
    if running is None:
        return settings
    open_ones = type(settings).model_fields.keys() - settings.model_fields_set
    known = {name: value for name, value in running.settings().items() if name in open_ones and value}
    return settings.model_copy(update=known)
