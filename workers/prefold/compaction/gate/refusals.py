"""How a gate says no."""

from prefold.errors import RefusedError


class GateRefusedError(RefusedError):
    """The summary may not be used; ``code`` says why, and is stable."""

    code = "summary_refused"


class NoGainError(GateRefusedError):
    """It would not make the context smaller."""

    code = "no_gain"
