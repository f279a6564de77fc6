"""What of a user's message may bind as the user's own words.

Stricter than ``pasted``, which the ledger goes by: when in doubt a passage counts as pasted here. It can still be
reported then, but never stands as somebody's wish.
"""

import re
from collections.abc import Iterator

from prefold.compaction.reading.pasted import pasted_ranges

_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,}|\"{3,}|'{3,})")
_QUOTED = re.compile(r"^\s{0,3}(?:>|&gt;|\|)\s?")
_TAG = re.compile(r"^\s{0,8}</?\s*([A-Za-z][\w:-]{0,40})(?:\s[^<>\n]{0,300})?>")
_HEADER = re.compile(
    r"^\s{0,3}(?:from|to|subject|date|sent|cc|reply-to|von|an|betreff|de|à|objet|asunto|assunto|发件人|收件人|主题|件名|差出人|от|тема)\s?[:：]\s?\S",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"^\W{0,12}(?:begin|start|forwarded message|original message|weitergeleitete nachricht|message transféré|mensaje reenviado|转发|引用|開始|document|attachment|file|page|transcript|log|output)\b[^.!?]{0,60}\W{3,}$"
    r"|^\s{0,3}[-=_*#~—]{3,}.{0,60}$",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"""(?:page|article|document|doc|e-?mail|letter|log|output|response|review|post|message|comment|issue|ticket|readme|pdf|website|site|transcript|contract|paste|traceback
        |says|said|reads|wrote|seite|artikel|dokument|schreibt|steht|courriel|fichier|página|pagina|correo|documento|archivo|arquivo|messaggio|bericht
        |страниц\w*|письмо|документ\w*|пишет|sayfa\w*|belge\w*|metin|网页|文章|文档|邮件|原文|写道|写着|ページ|記事|文書|メール|문서|페이지|메일|الصفحة|المستند|الرسالة|पेज|दस्तावेज़|ईमेल)
        [^\n.!?。！？]{0,40}[:：]\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
_INLINE = re.compile(
    r"""(?<=[:：,，])\s?(?:"[^"\n]{24,2000}"|“[^“”\n]{12,2000}+”|«[^«»\n]{24,2000}+»|„[^„“”\n]{24,2000}+[“”]|「[^「」\n]{12,2000}+」|『[^『』\n]{12,2000}+』)
      |"[^"\n]{120,4000}"|“[^“”\n]{80,4000}+”""",
    re.VERBOSE,
)
"""A quotation in a line: one that is introduced, or a long one."""


def split_pasted(text: str) -> Iterator[tuple[bool, str]]:
    """Pieces of ``text`` in order, each with whether it is pasted."""
    at = 0
    for start, end in doubtful_ranges(text):
        yield False, text[at:start]
        yield True, text[start:end]
        at = end
    yield False, text[at:]


def doubtful_ranges(text: str) -> list[tuple[int, int]]:
    """Parts ``[start, end)`` of ``text`` that may be somebody else's; sorted, none inside another. Linear."""
    found = [*pasted_ranges(text), *_pasted_lines(text), *(one.span() for one in _INLINE.finditer(text))]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _pasted_lines(text: str) -> Iterator[tuple[int, int]]:
    state, start = _Inside(), 0
    for line in text.split("\n"):
        end = start + len(line) + 1
        if state.takes(line):
            yield start, min(end, len(text))
        start = end


class _Inside:
    """Whether the reading is inside something pasted, and what ends it."""

    def __init__(self) -> None:
        self._until: str | None = None
        """How the line begins, spaces left out, that ends it; empty: nothing does."""

    def takes(self, line: str) -> bool:
        """Whether ``line``, the next one, is pasted."""
        if self._until is not None:
            if self._until and self._until in "".join(line.split()):
                self._until = None
            return True
        if fence := _FENCE.match(line):
            self._until = fence[1][:3]
        elif tag := _TAG.match(line):
            self._until = None if f"</{tag[1]}" in line else f"</{tag[1]}"
        elif _HEADER.match(line) or _BEGINS.match(line):
            self._until = ""
        elif _INTRODUCES.search(line[-160:]):
            self._until = ""
            return False
        else:
            return bool(_QUOTED.match(line))
        return True
