"""Compaction: the engines that write summaries, the ledger, the head of a context, and the build job."""

from prefold.compaction.engine import Summarizer, Summary, SummaryInput, SummarySection
from prefold.compaction.extractive import ExtractiveSummarizer
from prefold.compaction.ledger import Ledger, LedgerEntry, collect_ledger
from prefold.compaction.reading import TurnCache, language_of

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
