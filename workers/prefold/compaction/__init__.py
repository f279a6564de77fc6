"""Compaction: the engines that write summaries, the ledger, the head of a context, and the build job."""

from prefold.compaction.engine import Summarizer, Summary, SummaryInput, SummarySection
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.ledger.collect import Ledger, LedgerEntry, collect_ledger
from prefold.compaction.reading.turns import TurnCache, language_of

__all__ = [
    "ExtractiveSummarizer",
    "Ledger",
    "LedgerEntry",
    "Summarizer",
    "Summary",
    "SummaryInput",
    "SummarySection",
    "TurnCache",
    "collect_ledger",
    "language_of",
]
