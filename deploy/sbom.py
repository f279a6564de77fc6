"""Writes what a lock file names as a bill of materials (CycloneDX 1.5, JSON): ``sbom.py [LOCKFILE] > sbom.cdx.json``.

The same lock gives the same bytes. Standard library only; nothing is looked up anywhere.
"""

import hashlib
import json
import re
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

LOCK = Path(__file__).resolve().parent.parent / "lock" / "runtime.txt"
_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==(?P<version>[^\s;\\]+)\s*(;\s*(?P<marker>[^\\]+))?"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NAMESPACE = uuid.UUID("5d3f0c52-6f6c-5d0e-9c0e-6f1d3c1b7a10")


class Pin(NamedTuple):
    """One package of the lock."""

    name: str
    version: str
    marker: str
    """Where it is installed; empty: everywhere."""
    hashes: tuple[str, ...]
    """SHA-256 of each file of that version which may be installed."""


def main(argv: Sequence[str]) -> int:
    """Print the bill of the lock file that is named, else of lock/runtime.txt."""
    text = Path(argv[0] if argv else LOCK).read_text("utf-8")
    sys.stdout.write(json.dumps(bill(text), indent=1) + "\n")
    return 0


def bill(lock: str) -> dict[str, Any]:
    """The document. Its serial number follows from the lock's text."""
    digest = hashlib.sha256(lock.encode()).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "prefold",
                "name": "prefold",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
            "properties": [{"name": "prefold:lock:sha256", "value": digest}],
        },
        "components": [_component(pin) for pin in pins(lock)],
    }


def pins(lock: str) -> Iterator[Pin]:
    """Every package that the lock names, in its order."""
    for entry in lock.replace("\\\n", " ").splitlines():
        if entry.strip() and not entry.lstrip().startswith("#"):
            found = _PIN.match(entry)
            if found is None:
                raise SystemExit(f"sbom: cannot read {entry[:80]!r}")
            marker = (found["marker"] or "").partition("--hash")[0].strip()
            yield Pin(found["name"].lower(), found["version"], marker, tuple(_HASH.findall(entry)))


def _component(pin: Pin) -> dict[str, Any]:
    place = f"pkg:pypi/{re.sub(r'[-_.]+', '-', pin.name)}@{pin.version}"
    hashes = [{"alg": "SHA-256", "content": one} for one in pin.hashes]
    marker = [{"name": "prefold:marker", "value": pin.marker}] if pin.marker else []
    return {
        "type": "library",
        "bom-ref": place,
        "name": pin.name,
        "version": pin.version,
        "purl": place,
        "externalReferences": [{"type": "distribution", "url": place, "hashes": hashes}],
        **({"properties": marker} if marker else {}),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
