"""The served context: stored lines as they are, or what a smaller budget takes of them, with memory beside the newest turn."""

from prefold.assembly.assemble import (
    LEAST_BUDGET_TOKENS,
    Format,
    ProfileInput,
    RecallInput,
    assemble,
    standing_turns,
    system_of,
)
from prefold.assembly.breakpoints import Ttl
from prefold.assembly.recall import RecalledItem
from prefold.assembly.served import ServedContext, ServedLeftOut, ServedRecall
from prefold.assembly.whole import Spliced, served_whole, spliced_of

__all__ = [
    "LEAST_BUDGET_TOKENS",
    "Format",
    "ProfileInput",
    "RecallInput",
    "RecalledItem",
    "ServedContext",
    "ServedLeftOut",
    "ServedRecall",
    "Spliced",
    "Ttl",
    "assemble",
    "served_whole",
    "spliced_of",
    "standing_turns",
    "system_of",
]
