"""The served context: stored lines as they are, or what a smaller budget takes of them, with recall beside the newest turn."""

from prefold.assembly.assemble import LEAST_BUDGET_TOKENS, Format, RecallInput, assemble
from prefold.assembly.breakpoints import Ttl
from prefold.assembly.recall import RecalledItem
from prefold.assembly.served import ServedContext, ServedLeftOut, ServedRecall

__all__ = [
    "LEAST_BUDGET_TOKENS",
    "Format",
    "RecallInput",
    "RecalledItem",
    "ServedContext",
    "ServedLeftOut",
    "ServedRecall",
    "Ttl",
    "assemble",
]
