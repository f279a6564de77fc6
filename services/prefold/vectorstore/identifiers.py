"""Ids of points and names of collections."""

import re
import uuid

import qdrant_edge as edge

from prefold.vectorstore.fields import array
from prefold.vectorstore.rejections import malformed, wrong

_MAX_INTEGER = 2**64 - 1
_FORBIDDEN_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')

PointId = int | uuid.UUID | str
"""What qdrant-edge takes. Ours are integers, or UUIDs as canonical strings."""


def point_id(value: object, path: str) -> PointId:
    """An unsigned integer, or a UUID in its canonical form."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_INTEGER:
        return value
    if isinstance(value, str):
        try:
            return str(uuid.UUID(value))
        except ValueError:
            pass
    shown = repr(value)[:80]
    raise malformed(
        path,
        f"value {shown} is not a valid point ID, valid values are either an unsigned integer or a UUID",
    )


def point_ids(value: object, path: str) -> list[PointId]:
    """An array of ids."""
    return [point_id(item, f"{path}[{index}]") for index, item in enumerate(array(value, path))]


def payload_path(value: object, path: str) -> str:
    """The path of a member of the payload, such as ``tenant`` or ``place.city``."""
    if isinstance(value, str):
        try:
            return edge.IsEmptyCondition(value).key
        except ValueError:
            pass
    raise malformed(path, f"value {repr(value)[:80]} is not the path of a payload's member")


def collection_name(name: str) -> str:
    """The name if Qdrant would take it. It never becomes a path here: folders have names of their own."""
    if not 0 < len(name.encode("utf-8", "surrogatepass")) <= 255 or _FORBIDDEN_IN_NAMES.search(name):
        raise wrong('a collection name has 1 to 255 bytes and none of <>:"/\\|?*')
    return name
