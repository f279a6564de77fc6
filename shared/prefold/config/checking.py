"""What ``--check-config`` looks at beside the settings themselves: folders and files that they name."""

import os
from pathlib import Path

from prefold.errors import ConfigurationError

__all__ = ["check_folder", "check_log_file"]


def check_folder(path: Path, variable: str) -> None:
    """``ConfigurationError``: the folder is not there and cannot be made, or this user cannot write in it."""
    place = path.expanduser().absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise ConfigurationError(f"{variable}: {place} is no folder", field=variable)
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{variable}: {place} cannot be written by this user", field=variable)


def check_log_file(path: Path | None, variable: str) -> None:
    """``ConfigurationError``: lines could not be added to the file. None: there is none."""
    if path is None:
        return
    if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
        raise ConfigurationError(f"{variable}: {path} cannot be written by this user", field=variable)
    check_folder(path.absolute().parent, variable)
