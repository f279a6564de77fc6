"""What an error says of itself in a traceback."""

import pytest

from prefold.errors import InvalidInputError


@pytest.mark.parametrize(
    ("detail", "field", "shown"),
    [
        ("must be text", "turns[2].role", "must be text (field turns[2].role)"),
        ("limit: must be a number", "limit", "limit: must be a number"),
        ("must be text", None, "must be text"),
    ],
)
def test_wrong_input_names_its_place_once_and_its_detail_stays(detail: str, field: str | None, shown: str) -> None:
    error = InvalidInputError(detail, field=field)
    assert (str(error), error.detail) == (shown, detail)
