"""The brain that does as it is asked: real sentences of the source, each in its section, within the cap."""

import re
from collections.abc import Iterator

from tests.support.messages_api.brains.form import written
from tests.support.messages_api.brains.reading import SECTIONS, Sentence, Source, source_of
from tests.support.messages_api.counting import text_tokens
from tests.support.messages_api.wanted import Wanted

_CUES = re.compile(
    r"(?P<corrections>\b(?:no, i meant|actually|instead of|correction|sorry, i)\b|不是|更正|改成|改为|訂正|ではなく)"
    r"|(?P<constraints>\b(?:never|must|allergic|allergy|don't|do not|only|at most|limit|budget|cannot)\b"
    r"|不要|必须|过敏|不能|禁止|预算|アレルギー|絶対|ないでください|予算)"
    r"|(?P<decisions>\b(?:decided|agreed|let's|we'll|go with|chose)\b|决定|就用|同意|決め)"
    r"|(?P<errors>\b(?:error|failed|failure|exception|broken)\b|错误|失败|报错|エラー|失敗)"
    r"|(?P<done>\b(?:done|created|sent|booked|finished|updated|fixed)\b|完成|已经|完了)"
    r"|(?P<pending>\b(?:todo|next|waiting|pending|later)\b|接下来|之后|次に)"
    r"|(?P<values>\d|@|https?:)",
    re.IGNORECASE,
)
_BINDING = frozenset({"corrections", "constraints"})
_QUOTED = _BINDING | {"intent", "state"}
_MOST_LINES = 16
_LEAST_LINE_TOKENS = 20
_STRIDE = 40
_ENOUGH_LINES = 40


def faithful(wanted: Wanted) -> str:
    """The summary that is asked for, of the request's own sentences."""
    return written(chosen_lines(source_of(wanted)))


def chosen_lines(source: Source, share_of_source: float = 0.2) -> dict[str, list[str]]:
    """Per section; from all over the source, within the asked cap and within a share of the source."""
    first, last = _ends(source)
    left = min(0.4 * source.cap_tokens, max(60, share_of_source * source.tokens)) - text_tokens(first.text + last.text)
    chosen: dict[str, list[tuple[int, str]]] = {key: [] for key in SECTIONS}
    seen = {first.text, last.text}
    for at in _all_over(len(source.said)):
        for sentence in source.sentences_at(at):
            key = _section_of(sentence) if sentence.text not in seen else None
            if key is None or len(chosen[key]) >= _MOST_LINES:
                continue
            seen.add(sentence.text)
            line = _line(key, sentence)
            if (cost := text_tokens(line) + 3) <= left:
                left -= cost
                chosen[key].append((at, line))
        if left < _LEAST_LINE_TOKENS or sum(map(len, chosen.values())) >= _ENOUGH_LINES:
            break
    lines = {key: [line for _, line in sorted(found)] for key, found in chosen.items()}
    return {**lines, "intent": [_line("intent", first)], "state": [_line("state", last)]}


def _ends(source: Source) -> tuple[Sentence, Sentence]:
    """What was said first and last, by a person where there is one."""
    of_user = [at for at, turn in enumerate(source.said) if turn.role == "user"] or list(range(len(source.said)))
    first = next((found[0] for at in of_user if (found := source.sentences_at(at))), Sentence("user", "…"))
    last = next((found[-1] for at in reversed(of_user) if (found := source.sentences_at(at))), first)
    if first == last:
        last = next((found[-1] for at in _backwards(source) if (found := source.sentences_at(at))), last)
    return first, last


def _backwards(source: Source) -> range:
    return range(len(source.said) - 1, -1, -1)


def _section_of(sentence: Sentence) -> str | None:
    """None: it says nothing that a summary needs. Only a person binds."""
    if sentence.key:
        return sentence.key
    cue = _CUES.search(sentence.text)
    if cue is None or (cue.lastgroup in _BINDING and sentence.role != "user"):
        return None
    return cue.lastgroup


def _line(key: str, sentence: Sentence) -> str:
    """What binds, and what may sound like an answer to somebody, is quoted with who said it when."""
    said = _plain(sentence.text)
    is_own = key in _QUOTED and sentence.seq and not sentence.key
    return f'[{sentence.seq} {sentence.role}] "{said}"' if is_own else said


def _all_over(count: int) -> Iterator[int]:
    """Every index once, far apart ones first."""
    stride = max(1, count // _STRIDE)
    for start in range(stride):
        yield from range(start, count, stride)


def _plain(sentence: str) -> str:
    return re.sub(r"[<>\s]+", " ", sentence).strip()
