"""A served context as what is seen of it: texts by section, verbatim."""

from collections.abc import Iterator, Mapping, Sequence

from prefold.client import Context
from prefold.conversation.sections import SectionReader
from prefold.evaluation.seen import Seen


def seen_context(context: Context) -> Seen:
    """Of a context in Anthropic's form. Calls and results of tools stand in the window with all their texts."""
    texts: dict[str, list[str]] = {}
    for name, text in _placed(context):
        texts.setdefault(name, []).append(text)
    sections = {name: "\n".join(parts) for name, parts in texts.items()}
    return Seen(sections, [str(one.get("kind", "turn")) for one in context.recalled], context.tokens)


def _placed(context: Context) -> Iterator[tuple[str, str]]:
    yield from SectionReader("system").pieces(context.system)
    reader = SectionReader()
    for message in context.messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                yield from reader.pieces(block["text"])
            else:
                yield "window", "\n".join(_strings(block))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _strings(member)
    elif isinstance(value, Sequence):
        for member in value:
            yield from _strings(member)
