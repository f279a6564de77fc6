"""What stands in a person's turn but is not what they say: pasted documents, forwarded mail, cited lines.

As far as can be told: by tags around it, marks of a quotation, the headers of a mail, or a long text after words
that hand one over ("summarise this:"). Fenced code is known by its fences, see ``sentences``.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

_TAGS = (
    "document|documents|doc|file|files|context|attachment|email|mail|message|article|source|sources|paste|pasted|quote|blockquote|data|log|logs|transcript|text|page|webpage|website|content"
    "|excerpt|passage|policy|contract|report|letter|input|search_results?|results?|notes?|book|chapter"
)
_TAGGED = re.compile(rf"<(?P<tag>{_TAGS})(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
_CITED = re.compile(r"^[ \t]{0,3}>.*$", re.MULTILINE)
_BLOCK = re.compile(r'^[ \t]*("""|\'\'\'|“““|===+|<<<+|\[BEGIN[^\]\n]{0,60}\])[ \t]*$', re.MULTILINE)
_HEADER = r"(?:From|To|Cc|Bcc|Subject|Date|Sent|Reply-To|Von|An|Betreff|Gesendet|Datum|De|À|Objet|Envoyé|Para|Asunto|Assunto|Enviado|От|Кому|Тема|Дата|发件人|收件人|抄送|主题|日期|发送时间|差出人|宛先|件名|送信日時)"
_MAIL = re.compile(rf"^[ \t>*]*{_HEADER}\*{{0,2}}\s?[:：].{{0,300}}\n[ \t>*]*{_HEADER}\*{{0,2}}\s?[:：]", re.MULTILINE)
_FORWARDED = re.compile(
    r"^[ \t]*(?:-{2,}\s*(?:Original|Forwarded|Weitergeleitete|Ursprüngliche|Message|Mensaje|Mensagem|Пересылаемое).{0,60}|Begin forwarded message:?|Anfang der weitergeleiteten.{0,40}|-+\s*(?:原始邮件|转发邮件|転送).{0,20}"
    r"|(?:On|Am|Le|El|Em)\s.{4,120}\s(?:wrote|schrieb.{0,60}|a écrit|escribió|escreveu)\s?:)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_HANDED_OVER = re.compile(
    r"^(?P<said>.{0,300}\b(?:summari[sz]e|translate|proofread|review|rewrite|shorten|paraphrase|analy[sz]e|explain|correct|edit|check|read|here(?:'s|\sis|\sare)|below|following|pasted?|attached|this\sis|fasse|übersetze|résume|traduis|resume|traduce"
    r"|resuma|traduza)\b.{0,200}|.{0,100}(?:以下|下面|总结|翻译|概括|摘要|润色|要約|翻訳).{0,100})[:：][ \t]*\n",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"\s*(?:```|~~~)")
_LEAST_HANDED = 600
"""Characters from which what comes after such words is a text, and not a few lines of the speaker's own."""


def pasted_ranges(text: str) -> list[tuple[int, int]]:
    """Parts ``[start, end)`` of ``text`` that its speaker only passes on; sorted, none inside another. Linear."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(_ranges(text)):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def is_inside(ranges: Sequence[tuple[int, int]], at: int) -> bool:
    """Whether a position is in one of ``ranges``, which are sorted."""
    before = bisect_right(ranges, (at, len(ranges) + (1 << 62)))
    return before > 0 and at < ranges[before - 1][1]


def _ranges(text: str) -> Iterator[tuple[int, int]]:
    if "<" in text:
        yield from _tagged(text)
    if ">" in text:
        yield from (found.span() for found in _CITED.finditer(text))
    if "\n" not in text:
        return
    yield from _blocks(text)
    for pattern in (_MAIL, _FORWARDED):
        if found := pattern.search(text):
            yield found.start(), len(text)
    found = _HANDED_OVER.search(text)
    if found and len(text) - found.end() >= _LEAST_HANDED and not _FENCE.match(text, found.end()):
        yield found.end(), len(text)


def _tagged(text: str) -> Iterator[tuple[int, int]]:
    """From each opening tag to its end tag; to the end of the text where it has none, for somebody cut it off."""
    at = 0
    lowered = text.lower()
    while found := _TAGGED.search(text, at):
        end = lowered.find(f"</{found['tag'].lower()}>", found.end())
        at = end if end >= 0 else len(text)
        yield found.start(), at


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Between pairs of lines that hold nothing but the mark of a block."""
    marks = list(_BLOCK.finditer(text))
    for opened, closed in zip(marks[::2], marks[1::2], strict=False):
        yield opened.start(), closed.end()
