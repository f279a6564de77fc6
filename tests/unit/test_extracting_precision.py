"""How much of what the offline extractor finds in the development conversations is right, by a reader's labels."""

import pytest

from tests.support.seeds import tell
from tests.support.statements.labelled import extracted_from_data, read_labels

LEAST_PRECISION = 0.9
MOST_UNREAD_SHARE = 0.03
"""Rows without a label: more of them, and somebody has to read them."""
SHORT_BYTES = 130_000


@pytest.mark.parametrize(
    ("most_bytes", "least_rows"), [(SHORT_BYTES, 50), pytest.param(None, 180, marks=pytest.mark.long)]
)
def test_nine_of_ten_rows_out_of_the_development_conversations_are_right(
    most_bytes: int | None, least_rows: int
) -> None:
    labels = read_labels()
    rows = list(extracted_from_data(most_bytes))
    read = [labels[row.label] for row in rows if row.label in labels]
    unread = [f"{row.conversation}:{row.row.source.turn_id}" for row in rows if row.label not in labels]
    tell(f"{sum(read)} of {len(read)} labelled rows are right, {len(unread)} have no label")
    assert len(read) >= least_rows
    assert len(unread) <= MOST_UNREAD_SHARE * len(rows), unread
    assert sum(read) >= LEAST_PRECISION * (len(read) + len(unread))
