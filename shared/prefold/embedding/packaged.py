"""Model files that come inside PyPI packages, checked before anything reads them."""

import hashlib
import importlib.util
from pathlib import Path

from prefold.errors import ConfigurationError

_CHUNK_BYTES = 1 << 20


def package_file(package: str, relative: str, sha256: str, *, install: str) -> Path:
    """The path of a data file inside an installed package, without importing the package.

    ``install`` is the requirement that brings it, for the message. Raises ``ConfigurationError`` when the
    package or the file is missing, or the file is not byte for byte the one that we know.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(f"the package {package} is not installed: pip install '{install}'")
    path = Path(next(iter(spec.submodule_search_locations))) / relative
    verify_file(path, sha256)
    return path


def verify_file(path: Path, sha256: str) -> None:
    """Returns if the file has this hash, else raises ``ConfigurationError``."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise ConfigurationError(f"cannot read the model file {path}: {error.strerror}") from error
    if digest.hexdigest() != sha256:
        raise ConfigurationError(
            f"{path} is not the file that this version was tested with: "
            f"SHA-256 is {digest.hexdigest()}, expected {sha256}"
        )
