"""A sound summary of the corpus's conversation, and the conversation as the gate gets it."""

from prefold.compaction.gate.checks import GateSource
from tests.support.compaction import stored
from tests.support.injected.corpus import Injection

SOUND: dict[str, list[str]] = {
    "intent": ["The user has forty boxes of ceramic tiles to ship from Utrecht to Porto before 14 May."],
    "constraints": [
        '[3 user] "Never use air freight, the tiles cracked last time."',
        '[3 user] "The budget is 1,250 euros at most."',
    ],
    "values": ["pickup: Keizersgracht 12, contact Marit Dekker"],
    "decisions": ["The second offer was taken, for it covers breakage up to 5,000 euros."],
    "state": ["The second offer is reserved, and the confirmation of the truck is still outstanding."],
}


def source_of(injection: Injection) -> GateSource:
    """The conversation that carries ``injection``."""
    turns = [
        stored(seq, one["role"], one["content"], **{key: str(one[key]) for key in ("name",) if key in one})
        for seq, one in enumerate(injection.turns(), start=1)
    ]
    return GateSource(turns, "en", 800, sum(turn.tokens for turn in turns))
