"""Which parts of a stored context stand in a smaller budget, by the precedence of the design.

limit > validity > newest turn (in short form) > system > pinned state > task and first message > ledger > summary >
window. The newest turn stands whole while it takes no more than half of the room, so that it is not cut for a summary.
The window yields from its oldest turn and by steps (``shares`` says why), pictures before words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from prefold.assembly.groups import HEAD_PARTS, Group, gap_range, group_fragments
from prefold.assembly.shares import window_step
from prefold.assembly.shorten import Shortener
from prefold.conversation.markers import GAP_TOKENS, gap_block
from prefold.conversation.project import Fragment

_NEWEST_SHARE = 0.5
_LEAST_CLIP_TOKENS = 24
"""Fewer tokens of a text than this tell nothing."""
_LEAST_ROOM_FOR_FIRST = 4 * GAP_TOKENS
"""Raw tokens below which a first message that needs a gap on each side is not worth it."""
_LEAST_NEWEST_TOKENS = 64
"""The newest turn gets this much, if there is this much, before anything else gets any."""
_CLIPPED_PARTS = ("task", "first_message", "ledger")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What yielded, the raw tokens that it spared (``None``: not known), and why."""

    part: str
    tokens: int | None
    reason: str
    first_seq: int | None = None
    last_seq: int | None = None
    kind: str = ""
    """Of something recalled that is no turn."""
    id: str = ""
    count: int | None = None
    """Of facts that had no room in the profile."""


@dataclass(slots=True)
class Plan:
    """What is served. Tokens are raw."""

    system: str
    system_tokens: int
    tools_tokens: int
    state: str = ""
    """What a backend pinned: stands after the system prompt."""
    state_tokens: int = 0
    fragments: list[Fragment] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    keeps_open_round: bool = True
    """False when the newest round had to give way to a marker: its calls are no longer open in this view."""

    @property
    def tokens(self) -> int:
        """Of all of it."""
        fixed = self.system_tokens + self.state_tokens + self.tools_tokens
        return fixed + sum(fragment.tokens for fragment in self.fragments)

    @property
    def whole_system(self) -> str:
        """The system prompt with the pinned state."""
        return joined_system(self.system, self.state)


def joined_system(system: str, state: str) -> str:
    """The system prompt, then the pinned state. No provider takes a blank one."""
    return "\n\n".join(part for part in (system, state) if part.strip())


@dataclass(frozen=True, slots=True)
class Parts:
    """A stored context taken apart."""

    head: tuple[Fragment, ...]
    gap: Fragment | None
    groups: tuple[Group, ...]
    """Window groups, oldest first; an opener belongs to the first."""
    covers_to: int

    @classmethod
    def of(cls, fragments: Sequence[Fragment], covers_to: int) -> "Parts":
        """The parts of a context string's fragments."""
        by_part: dict[str, list[Fragment]] = {"head": [], "gap": [], "opener": [], "window": []}
        for fragment in fragments:
            kind = "head" if fragment.part in HEAD_PARTS else fragment.part
            by_part[kind if kind in by_part else "window"].append(fragment)
        groups = group_fragments(by_part["window"])
        if by_part["opener"] and groups:
            groups[0] = Group.of((*by_part["opener"], *groups[0].fragments))
        return cls(tuple(by_part["head"]), next(iter(by_part["gap"]), None), tuple(groups), covers_to)

    @property
    def first_message_group(self) -> int | None:
        """Index of the first user turn while it still stands in the window, else ``None``."""
        if self.covers_to or self.gap is not None or any(fragment.part == "first_message" for fragment in self.head):
            return None
        return next((i for i, group in enumerate(self.groups) if group.is_plain_user), None)


class Planner:
    """Fits one context into ``room`` raw tokens. Use once."""

    def __init__(self, parts: Parts, plan: Plan, room: int, shortener: Shortener) -> None:
        self._parts = parts
        self._plan = plan
        self._free = room
        self._step = window_step(room)
        self._shortener = shortener
        self._first = parts.first_message_group if room >= _LEAST_ROOM_FOR_FIRST else None
        self._kept: dict[int, Group] = {}
        self._head: dict[int, Fragment] = {}

    def fit(self, reserve: int = 0) -> Plan:
        """The plan; ``reserve`` tokens are kept free as far as the window can spare them."""
        markers = self._marker_room()
        self._free -= markers
        self._take_newest()
        self._take_tools()
        self._take_system()
        self._take_state()
        self._take_head()
        self._take_first_message()
        self._complete_newest()
        self._take_window(reserve, markers)
        self._lengthen_newest(reserve)
        self._compose()
        return self._plan

    def _marker_room(self) -> int:
        # The first message may stand apart from the rest of the window, with a gap on each side.
        return GAP_TOKENS * (2 if self._first else 1)

    def _take_newest(self) -> None:
        if not self._parts.groups:
            return
        newest = self._parts.groups[-1]
        share = max(int(self._free * _NEWEST_SHARE), min(self._free, _LEAST_NEWEST_TOKENS))
        if newest.tokens <= share:
            self._keep(len(self._parts.groups) - 1, newest)
        else:
            self._keep_shortened(newest, share)

    def _keep_shortened(self, group: Group, room: int) -> None:
        shorter = self._shortener.shorten(group, room)
        if shorter is not None:
            self._plan.keeps_open_round = not shorter.is_marker
            self._keep(len(self._parts.groups) - 1, shorter.group)

    def _take_tools(self) -> None:
        tokens = self._plan.tools_tokens
        if tokens > self._free:
            self._plan.tools_tokens = 0
            self._leave("tools", tokens)
        self._free -= self._plan.tools_tokens

    def _take_system(self) -> None:
        tokens = self._plan.system_tokens
        if tokens > self._free:
            text, left = self._shortener.cut_text(self._plan.system, self._free) if self._can_clip() else ("", 0)
            self._plan.system, self._plan.system_tokens = text, left
            self._leave("system", tokens - left, "clipped" if text else "no_room")
        self._free -= self._plan.system_tokens

    def _take_state(self) -> None:
        tokens = self._plan.state_tokens
        if tokens > self._free:
            text, left = self._shortener.cut_lines(self._plan.state, self._free) if self._can_clip() else ("", 0)
            self._plan.state, self._plan.state_tokens = text, left
            self._leave("state", tokens - left, "clipped" if text else "no_room")
        self._free -= self._plan.state_tokens

    def _take_head(self) -> None:
        for part in HEAD_PARTS:
            for index, fragment in enumerate(self._parts.head):
                if fragment.part == part:
                    self._take_head_fragment(index, fragment)

    def _take_head_fragment(self, index: int, fragment: Fragment) -> None:
        kept: Fragment | None = fragment
        if fragment.tokens > self._free:
            clips = fragment.part in _CLIPPED_PARTS and self._can_clip()
            kept = self._shortener.cut_fragment(fragment, self._free) if clips else None
            spared = fragment.tokens - (kept.tokens if kept else 0)
            self._leave(fragment.part, spared, "clipped" if kept else "no_room")
        if kept is not None:
            self._head[index] = kept
            self._free -= kept.tokens

    def _take_first_message(self) -> None:
        index = self._first
        if index is None or index in self._kept:
            return
        group = self._parts.groups[index]
        if group.tokens <= self._free:
            self._keep(index, group)
        elif self._can_clip():
            shorter = self._shortener.shorten(group, self._free)
            if shorter is not None and not shorter.is_marker:
                self._keep(index, shorter.group)

    def _complete_newest(self) -> None:
        """The newest turn whole, if that is possible now, before the window gets any room."""
        newest, kept = self._newest()
        if newest is not None and kept is not newest and newest.tokens <= self._free + (kept.tokens if kept else 0):
            self._free += kept.tokens if kept else 0
            self._plan.keeps_open_round = True
            self._keep(len(self._parts.groups) - 1, newest)

    def _lengthen_newest(self, reserve: int) -> None:
        """As much of the newest turn as the window has left room for."""
        newest, kept = self._newest()
        if newest is not None and kept is not newest and self._free > reserve:
            room = self._free - reserve + (kept.tokens if kept else 0)
            self._free += kept.tokens if kept else 0
            self._keep_shortened(newest, room)

    def _newest(self) -> tuple[Group | None, Group | None]:
        """The newest group as it is stored, and as it is kept until now."""
        groups = self._parts.groups
        return (groups[-1], self._kept.get(len(groups) - 1)) if groups else (None, None)

    def _take_window(self, reserve: int, markers: int) -> None:
        rest = [index for index in range(len(self._parts.groups) - 1) if index not in self._kept]
        needed = sum(self._parts.groups[index].tokens for index in rest)
        if not self._has_gap_before_window() and needed <= self._free + markers - reserve:
            for index in rest:
                self._keep(index, self._parts.groups[index])
            return
        for index, group in self._yielded(rest, needed - (self._free - reserve)):
            self._keep(index, group)

    def _yielded(self, rest: Sequence[int], excess: int) -> list[tuple[int, Group]]:
        """What stays of the window when ``excess`` tokens and the rest of a step are gone.

        Pictures go before words: the oldest ones become placeholders, and only then the oldest groups yield.
        """
        left = -(-max(excess, 0) // self._step) * self._step
        staying = [(index, self._parts.groups[index]) for index in rest]
        for place, (index, group) in enumerate(staying):
            if left <= 0:
                break
            lighter = self._shortener.without_media(group)
            staying[place] = (index, lighter)
            left -= group.tokens - lighter.tokens
        for count, (_, group) in enumerate(staying):
            if left <= 0:
                return staying[count:]
            left -= group.tokens
        return []

    def _keep(self, index: int, group: Group) -> None:
        self._kept[index] = group
        self._free -= group.tokens

    def _can_clip(self) -> bool:
        return self._free >= _LEAST_CLIP_TOKENS

    def _leave(self, part: str, tokens: int, reason: str = "no_room") -> None:
        self._plan.left_out.append(LeftOut(part, tokens, reason))

    def _has_gap_before_window(self) -> bool:
        has_summary = any(self._parts.head[index].part == "summary" for index in self._head)
        return self._parts.gap is not None or (self._parts.covers_to > 0 and not has_summary)

    def _compose(self) -> None:
        served = [self._head[index] for index in sorted(self._head)]
        gap = _Gap()
        if self._has_gap_before_window():
            self._open_gap(gap)
        for index, group in enumerate(self._parts.groups):
            kept = self._kept.get(index)
            if kept is None:
                gap.add(group.first_seq, group.last_seq, group.tokens)
                continue
            self._close_gap(gap, served)
            if kept is not group:
                self._note_clipped(group, kept)
            served += kept.fragments
        self._close_gap(gap, served)
        self._plan.fragments = served

    def _open_gap(self, gap: "_Gap") -> None:
        kept_summary = any(fragment.part == "summary" for fragment in self._head.values())
        first = self._parts.covers_to + 1 if kept_summary or not self._parts.covers_to else 1
        last = gap_range(self._parts.gap)[1] if self._parts.gap is not None else self._parts.covers_to
        gap.add(first, max(first, last), 0)

    def _close_gap(self, gap: "_Gap", served: list[Fragment]) -> None:
        if gap.last == 0:
            return
        served.append(Fragment("user", gap.last, "gap", GAP_TOKENS, gap_block(gap.first, gap.last)))
        if gap.tokens:
            self._plan.left_out.append(LeftOut("window", gap.tokens, "no_room", gap.from_window, gap.last))
        gap.clear()

    def _note_clipped(self, group: Group, kept: Group) -> None:
        spared = group.tokens - kept.tokens
        reason = "clipped" if group is self._parts.groups[-1] else "short_form"
        self._plan.left_out.append(LeftOut("window", spared, reason, group.first_seq, group.last_seq))


@dataclass(slots=True)
class _Gap:
    """A run of turns left out, growing."""

    first: int = 0
    last: int = 0
    tokens: int = 0
    from_window: int = 0
    """First turn of it that stood in the window until now."""

    def add(self, first: int, last: int, tokens: int) -> None:
        if tokens and not self.tokens:
            self.from_window = first
        self.first = self.first or first
        self.last = max(self.last, last)
        self.tokens += tokens

    def clear(self) -> None:
        self.first = self.last = self.tokens = self.from_window = 0
