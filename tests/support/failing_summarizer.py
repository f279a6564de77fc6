"""``python -m tests.support.failing_summarizer worker compact``: a worker whose model never answers."""

import sys

from prefold.cli.main import main
from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.errors import UnavailableError


async def never(_engine: ExtractiveSummarizer, _wanted: SummaryInput) -> Summary:
    raise UnavailableError("the model does not answer", code="model_unavailable")


if __name__ == "__main__":
    ExtractiveSummarizer.summarize = never  # type: ignore[method-assign,assignment]
    sys.exit(main())
