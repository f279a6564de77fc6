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


class Bag:
    """The heading's words, then those of each passage. Read when it is asked for; of many at once: ``columns``."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @property
    def ids(self) -> NDArray[np.uint32]:
        """The words."""
        return columns([self]).ids

    @property
    def counts(self) -> NDArray[np.uint8]:
        """How often each of them stands there."""
        return columns([self]).counts

    @property
    def distinct(self) -> tuple[int, ...]:
        """How many of ``ids`` belong to the heading, and to each passage."""
        return tuple(columns([self]).distinct.tolist())

    @property
    def lengths(self) -> tuple[int, ...]:
        """Words with repeats, in the same order."""
        return tuple(columns([self]).lengths.tolist())

    @property
    def passages(self) -> int:
        """None for a text without words."""
        return self.raw[0] | self.raw[1] << 8


EMPTY: Final = Bag(bytes(6))


class Columns(NamedTuple):
    """Bags, one after the other."""

    parts: NDArray[np.int64]
    """A number a bag: its passages, and one for the heading."""
    distinct: NDArray[np.int64]
    """A number a part: how many of ``ids`` are its own."""
    lengths: NDArray[np.int64]
    """A number a part: words with repeats."""
    ids: NDArray[np.uint32]
    counts: NDArray[np.uint8]


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
    return Bag(a2b_base64(stored))


def columns(bags: Sequence[Bag]) -> Columns:
    """All that stands in the bags, read as one: bag by bag the arrays would take longer than the search itself."""
    raws = [bag.raw for bag in bags]
    parts = [(raw[0] | raw[1] << 8) + 1 for raw in raws]
    heads = [2 + 4 * number for number in parts]
    counted = [head + 4 * ((len(raw) - head) // 5) for raw, head in zip(raws, heads, strict=True)]
    sizes = np.frombuffer(b"".join([raw[2:head] for raw, head in zip(raws, heads, strict=True)]), "<u2")
    ids = b"".join([raw[head:end] for raw, head, end in zip(raws, heads, counted, strict=True)])
    counts = b"".join([raw[end:] for raw, end in zip(raws, counted, strict=True)])
    return Columns(
        np.array(parts, np.int64),
        sizes[::2].astype(np.int64),
        sizes[1::2].astype(np.int64),
        np.frombuffer(ids, "<u4"),
        np.frombuffer(counts, np.uint8),
    )


def joined(some: Columns, more: Columns) -> Columns:
    """The columns of the bags of both."""
    return Columns(
        np.concatenate([some.parts, more.parts]),
        np.concatenate([some.distinct, more.distinct]),
        np.concatenate([some.lengths, more.lengths]),
        np.concatenate([some.ids, more.ids]),
        np.concatenate([some.counts, more.counts]),
    )
