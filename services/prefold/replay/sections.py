"""A served context taken apart again, for people: what the model sees, part by part."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prefold.client import Context
from prefold.conversation.sections import SectionReader
from prefold.replay.words import clipped, one_line, speaker_and_gist

_PREVIEW_LINES = {"system": 3, "first_message": 3}
_PREVIEW_LINES_ELSE = 14
_WINDOW_TURNS = 8


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a context. ``text`` has its lines; marks of ours are taken off."""

    name: str
    tokens: int | None
    """None: counted in with another part."""
    text: str


def sections_of(context: Context) -> list[Section]:
    """The parts of a context, in the order in which the model reads them."""
    texts: dict[str, list[str]] = {}
    for part, text in SectionReader("system").pieces(context.system):
        texts.setdefault(part, []).append(text)
    reader = SectionReader()
    for message in context.messages:
        for block in _blocks(message):
            for part, text in _placed(reader, message["role"], block):
                texts.setdefault(part, []).append(text)
    known = context.sections
    named = [Section(name, known.get(name), "\n".join(parts)) for name, parts in texts.items()]
    return named + [Section(name, tokens, "") for name, tokens in known.items() if tokens and name not in texts]


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Content of a message of either format as blocks in Anthropic's form; of OpenAI's system message none."""
    role, content = message["role"], message.get("content")
    if role == "system":
        return []
    if role == "tool":
        return [{"type": "tool_result", "content": content}]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    functions = [call["function"] for call in message.get("tool_calls", ())]
    return blocks + [{"type": "tool_use", "name": one["name"], "input": one["arguments"]} for one in functions]


def _placed(reader: SectionReader, role: str, block: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The sections of a block, and their texts: a turn of the window on one line, after its speaker."""
    is_text = block["type"] == "text"
    for part, text in reader.pieces(block["text"]) if is_text else [("window", "")]:
        if part == "window":
            speaker, gist = speaker_and_gist({"role": role, "content": [{**block, "text": text} if is_text else block]})
            yield part, f"{speaker}: {gist}"
        else:
            yield part, text


def print_sections(console: Console, context: Context, *, is_whole: bool = False) -> None:
    """A table of the sections: name, tokens, text; clipped unless ``is_whole``."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, header_style="bright_black")
    table.add_column("section", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("text", ratio=1)
    width = max(20, console.width - 26)
    for section in sections_of(context):
        lines = section.text.splitlines() if is_whole else list(_preview(section, width))
        tokens = "" if section.tokens is None else f"{section.tokens:,}"
        table.add_row(Text(section.name.replace("_", " "), "bold"), tokens, Text("\n".join(lines)))
    table.add_row(Text("total", "bold"), Text(f"{context.tokens:,}", "bold"), "")
    console.print(table)


def _preview(section: Section, width: int) -> Iterator[str]:
    lines = [one_line(line) for line in section.text.splitlines() if line.strip()]
    if section.name == "window":
        hidden = len(lines) - _WINDOW_TURNS
        if hidden > 0:
            yield f"… {hidden} earlier blocks"
        yield from (clipped(line, width) for line in lines[-_WINDOW_TURNS:])
        return
    most = _PREVIEW_LINES.get(section.name, _PREVIEW_LINES_ELSE)
    yield from (clipped(line, width) for line in lines[:most])
    if len(lines) > most:
        yield f"… {len(lines) - most} more lines"
