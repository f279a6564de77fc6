"""Sentences of people about themselves, written for the tests: some state something, some only seem to."""

from tests.support.statements.stated import STATED, TAKEN_BACK
from tests.support.statements.typed import TYPED
from tests.support.statements.typed_nothing import TYPED_NOTHING
from tests.support.statements.unstated import UNSTATED

__all__ = ["STATED", "TAKEN_BACK", "TYPED", "TYPED_NOTHING", "UNSTATED"]
