"""What is said when a quota is used up."""

from collections.abc import Mapping
from datetime import timedelta

from prefold.errors import OverloadedError


class QuotaError(OverloadedError):
    """The tenant has used up what it may use. ``members`` name the quota."""

    code = "quota_exceeded"
    members: Mapping[str, object]

    def __init__(self, quota: str, detail: str, retry_after: timedelta, *, code: str | None = None) -> None:
        super().__init__(detail, code=code, retry_after=retry_after)
        self.members = {"quota": quota}
