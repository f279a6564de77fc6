"""What of a page is embedded: the turns that have a text and are worth finding again."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import structlog

from prefold.conversation.turns import TurnKind
from prefold.recall import TurnRange, index_turn
from prefold.recall.keeping import hangs_on_others, why_not
from prefold.storage.types import StoredTurn
from prefold.worker.embed_page import Item, Page, names

log = structlog.get_logger(__name__)

KeepsAll = Callable[[str], bool]
"""True for a tenant whose small talk is embedded, too."""
_SYSTEM: Final = "system_prompt"
"""Reason: what leads a session as its system prompt stands in every context anyway."""


class Selection:
    """Picks from pages and counts why turns were passed over."""

    def __init__(self, keeps_all: KeepsAll) -> None:
        self._keeps_all = keeps_all
        self.without_text = 0
        self.not_kept: Counter[str] = Counter()

    def items_of(self, page: Page) -> list[Item]:
        """The page's turns that are to be embedded; notes in the page which turns before it are settled by it."""
        page.settled = list(self._settled(page))
        return [item for turn in page.turns if (item := self._item(page, turn)) is not None]

    def _item(self, page: Page, turn: StoredTurn) -> Item | None:
        if turn.removed:
            self.without_text += 1
            return None
        try:
            if turn.seq in page.judged_again and not self._may_have_been_passed_over(page, turn):
                return None
            reason = self._why_not(page, turn)
            found = index_turn(turn.verbatim_json)
        except Exception as error:  # noqa: BLE001 (one turn that cannot be read must not hold up all others)
            log.error("turn_unreadable", **names(page.work.ref), seq=turn.seq, error=type(error).__qualname__)
            self.without_text += 1
            return None
        if reason is not None:
            self.not_kept[reason] += 1
        elif not found.text:
            self.without_text += 1
        return Item(page, turn, found) if reason is None and found.text else None

    def _settled(self, page: Page) -> Iterator[TurnRange]:
        """Turns that were embedded before it was known what would stand beside them."""
        ours = {turn.seq for turn in page.turns}
        again = page.redo | page.judged_again
        for seq in sorted({*(seq - 1 for seq in ours), *again}):
            turn = page.beside.get(seq)
            if turn is None or turn.removed or (seq in ours and seq not in again):
                continue
            try:
                is_settled = self._why_not(page, turn) is not None
            except Exception:  # noqa: BLE001, S112 (told of when it was its turn)
                continue
            if is_settled:
                yield TurnRange(seq, seq, turn.revision + 1)  # never what an edit has made since

    def _why_not(self, page: Page, turn: StoredTurn) -> str | None:
        before, after = (page.beside.get(turn.seq + step) for step in (-1, 1))
        if turn.kind == TurnKind.SYSTEM and not turn.content:  # one that does not lead stands in the window as text
            return _SYSTEM
        if self._keeps_all(page.work.ref.tenant):
            return None
        return why_not(turn.verbatim_json, _said(before), _said(after))

    def _may_have_been_passed_over(self, page: Page, turn: StoredTurn) -> bool:
        debt = page.work.debt
        is_last = debt is not None and turn.seq == debt.head_seq
        return hangs_on_others(turn.verbatim_json, _said(page.beside.get(turn.seq + 1)), is_last=is_last)


def _said(turn: StoredTurn | None) -> bytes | None:
    return None if turn is None or turn.removed else turn.verbatim_json
