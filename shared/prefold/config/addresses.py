"""Where the parts of a running ``prefold up`` are: a file in its data folder, for commands on the same machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson
from pydantic import SecretStr

from prefold.config.flags import redacted_url, variable_of
from prefold.config.settings import DataDirSettings, ProcessSettings
from prefold.errors import UnavailableError

__all__ = ["Addresses", "located", "naming_address", "tried"]

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
    probe_url: str = ""
    """Of the gateway: its metrics, without a key."""

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


def tried(settings: ProcessSettings, name: str) -> str:
    """The address that the setting ``name`` gives, without user and password; of a default also why it is no other."""
    shown = redacted_url(str(getattr(settings, name)))
    if name in settings.model_fields_set:
        return shown
    unset = f"{variable_of(type(settings), name)} is not set"
    if isinstance(settings, DataDirSettings):
        unset = f"no `prefold up` runs on {settings.data_dir}, and {unset}"
    return f"{shown} (the default: {unset})"


@contextmanager
def naming_address(settings: ProcessSettings, name: str) -> Iterator[None]:
    """``UnavailableError`` from within says which address was tried, and what helps; its ``field`` is the variable.

    One that has a field already passes as it is.
    """
    try:
        yield
    except UnavailableError as error:
        if error.field is not None:
            raise
        variable = variable_of(type(settings), name)
        is_away = error.code == UnavailableError.code
        mend = f"; start it, or let {variable} name the one that runs" if is_away else ""
        raise UnavailableError(
            f"{error.detail}: {tried(settings, name)}{mend}",
            code=error.code,
            field=variable,
            retry_after=error.retry_after,
        ) from error
