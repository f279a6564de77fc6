"""A served context taken apart again: of which section a piece of text is, told by our marks."""

import re
from collections.abc import Iterator

from prefold.conversation.marks import END

__all__ = ["SectionReader"]

_MARK = re.compile(r"(?:^|(?<=\n))\[Prefold: (?P<title>[^\]\n]{1,200})\](?:\n|$)?")
_GAP = "turns "
_REMOVED = "this turn "
_NAMES = {
    "pinned": "state",
    "first": "first_message",
    "newest": "task",
    "ledger": "ledger",
    "summary": "summary",
    "noted": "state",
    "what": "profile",
    "facts": "recall",
    "from": "recall",
    "earlier": "recall",
}
"""The first word of a part's opening mark, and the section under which its tokens are reported."""
_ELSE = "summary"


class SectionReader:
    """Is told the texts of a context one after the other, as the model reads them; a part may go over several.

    For looking at contexts, not for trust: a conversation that quotes a mark of ours is taken apart at it.
    """

    def __init__(self, outside: str = "window") -> None:
        """``outside``: the section of what stands between no marks."""
        self._outside = outside
        self._part = outside

    def pieces(self, text: str) -> Iterator[tuple[str, str]]:
        """Section and text of each piece, without the marks; a gap's mark is a piece of ``markers``."""
        at = 0
        for mark in _MARK.finditer(text):
            title = mark["title"]
            if title.startswith(_REMOVED) or (title.startswith(END) and self._part == self._outside):
                continue
            yield from self._piece(text[at : mark.start()])
            at = mark.end()
            if title.startswith(_GAP):
                yield "markers", mark.group().removesuffix("\n")
            else:
                self._part = self._outside if title.startswith(END) else _NAMES.get(title.split()[0], _ELSE)
        yield from self._piece(text[at:])

    def _piece(self, text: str) -> Iterator[tuple[str, str]]:
        inner = text.removesuffix("\n") if self._part != self._outside else text
        if inner.strip():
            yield self._part, inner
