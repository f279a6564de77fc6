"""A text's words as numbers with their counts, in a payload: what a score needs beyond the store's own.

The store's product of two sparse vectors is a sum. Whether the words stand in one passage, what the turns before and
after have, whether two texts say the same: for these the words themselves are needed. They are ids, as in the vector.

Form: base64 of ``u16 passages`` · ``u16 distinct, u16 length`` of the heading and of each passage · all ids, ``u32`` ·
all counts, ``u8``; little-endian.
"""

import struct
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MOST_COUNT: Final = 255
_MOST_LENGTH: Final = 65_535
_ONE_PASSAGE: Final = struct.Struct("<4H")
"""The sizes of a short text: nearly all are."""


class Bag(NamedTuple):
    """The heading's words, then those of each passage."""

    ids: NDArray[np.uint32]
    counts: NDArray[np.uint8]
    distinct: tuple[int, ...]
    """How many of ``ids`` belong to the heading, and to each passage."""
    lengths: tuple[int, ...]
    """Words with repeats, in the same order."""

    @property
    def passages(self) -> int:
        """None for a text without words."""
        return len(self.lengths) - 1


EMPTY: Final = Bag(np.zeros(0, np.uint32), np.zeros(0, np.uint8), (0,), (0,))


def packed(heading: Mapping[int, int], passages: Iterable[Mapping[int, int]]) -> str:
    """As it is stored. Counts beyond 255 are 255."""
    parts = [heading, *passages]
    sizes = [size for part in parts for size in (len(part), min(_MOST_LENGTH, sum(part.values())))]
    head = struct.pack(f"<H{len(sizes)}H", len(parts) - 1, *sizes)
    ids = np.fromiter((word for part in parts for word in part), np.dtype("<u4"))
    counts = bytes(min(_MOST_COUNT, count) for part in parts for count in part.values())
    return b64encode(head + ids.tobytes() + counts).decode("ascii")


def unpacked(stored: object) -> Bag:
    """The reverse; ``EMPTY`` for what is no bag, as points of earlier releases have none."""
    if not isinstance(stored, str) or not stored:
        return EMPTY
    raw = a2b_base64(stored)
    passages = raw[0] | raw[1] << 8
    sizes: Sequence[int] = (
        _ONE_PASSAGE.unpack_from(raw, 2) if passages == 1 else struct.unpack_from(f"<{2 * passages + 2}H", raw, 2)
    )
    distinct, lengths = tuple(sizes[::2]), tuple(sizes[1::2])
    start, total = 2 + 2 * len(sizes), sum(distinct)
    ids = np.frombuffer(raw, np.dtype("<u4"), total, start)
    counts = np.frombuffer(raw, np.uint8, total, start + 4 * total)
    return Bag(ids, counts, distinct, lengths)
