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
_FOUR: Final = np.arange(4)


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
    """All that stands in the bags, read in one pass: one by one they would take longer than the search itself."""
    raw = np.frombuffer(b"".join([bag.raw for bag in bags]), np.uint8)
    starts = _before(np.array([len(bag.raw) for bag in bags], np.int64))
    parts = _u16(raw, starts) + 1
    before = _before(parts)
    sizes = (starts + 2 - 4 * before).repeat(parts) + 4 * np.arange(parts.sum())
    distinct, lengths = _u16(raw, sizes), _u16(raw, sizes + 2)
    words = np.add.reduceat(distinct, before) if len(bags) else distinct
    first, skipped, nth = starts + 2 + 4 * parts, _before(words), np.arange(words.sum())
    ids = (first - 4 * skipped).repeat(words) + 4 * nth
    counts = (first + 4 * words - skipped).repeat(words) + nth
    return Columns(parts, distinct, lengths, raw[ids[:, None] + _FOUR].view("<u4").ravel(), raw[counts])


def joined(some: Columns, more: Columns) -> Columns:
    """The columns of the bags of both."""
    return Columns(
        np.concatenate([some.parts, more.parts]),
        np.concatenate([some.distinct, more.distinct]),
        np.concatenate([some.lengths, more.lengths]),
        np.concatenate([some.ids, more.ids]),
        np.concatenate([some.counts, more.counts]),
    )


def _before(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """How much stands before each."""
    before: NDArray[np.int64] = sizes.cumsum() - sizes
    return before


def _u16(raw: NDArray[np.uint8], places: NDArray[np.int64]) -> NDArray[np.int64]:
    return raw[places] + (raw[places + 1].astype(np.int64) << 8)
