"""The machine itself: room on the disk, and who may write the file of keys."""

import shutil
import stat
from pathlib import Path

from prefold.access import parse_key_file
from prefold.doctor.findings import Finding
from prefold.doctor.settings import DoctorSettings
from prefold.errors import ConfigurationError

__all__ = ["look_at_machine"]

_PART = "machine"
_LEAST_FREE_BYTES = 1 << 30


def look_at_machine(settings: DoctorSettings) -> list[Finding]:
    """Findings of this machine. Never raises."""
    return [_disk(settings.data_dir.expanduser()), _keys(settings.api_keys_file)]


def _disk(folder: Path) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except FileNotFoundError:
        return Finding(_PART, "data folder", "note", f"{folder} is not there: nothing is kept in it yet")
    except OSError as error:
        return Finding(_PART, "data folder", "unknown", f"{folder}: {error.strerror}", "let this user read it")
    has_room = free >= _LEAST_FREE_BYTES
    mend = "" if has_room else "make room: a store that cannot write takes no turns"
    return Finding(_PART, "data folder", "ok" if has_room else "wrong", f"{folder}, {free / 2**30:.1f} GiB free", mend)


def _keys(file: Path | None) -> Finding:
    if file is None:
        return Finding(
            _PART,
            "keys",
            "note",
            "no file is set here: a gateway with these settings serves this machine only, as tenant default",
        )
    try:
        mode = file.stat().st_mode
        has_keys = bool(parse_key_file(file.read_bytes()).keys)
    except (OSError, ConfigurationError) as error:
        return Finding(
            _PART, "keys", "wrong", f"{file} cannot be read: {error}", "let PREFOLD_API_KEYS_FILE name the file"
        )
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        mend = f"chmod go-w {file}: whoever writes it makes himself a key to any tenant"
        return Finding(_PART, "keys", "wrong", f"{file} can be written by others ({stat.filemode(mode)})", mend)
    if not has_keys:
        return Finding(_PART, "keys", "wrong", f"{file} has no key", "add one: prefold keys create")
    if mode & stat.S_IROTH:
        return Finding(_PART, "keys", "note", f"{file} can be read by everybody; it holds hashes only")
    return Finding(_PART, "keys", "ok", str(file))
