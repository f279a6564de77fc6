"""The cues there are."""

from enum import IntFlag


class Cue(IntFlag):
    """What the wording of a sentence says about its weight."""

    NONE = 0
    CONSTRAINT = 1
    """It binds: a limit, a ban, a standing instruction."""
    CONDITION = 2
    """A requirement in weaker words."""
    CORRECTION = 4
    UPDATE = 8
    """A value has changed in the course of things."""
    PREFERENCE = 16
    IDENTITY = 32
    """Who the speaker is, has, lives with."""
    DECISION = 64
    OPEN = 128
    """Something is still to be done."""
    REQUEST = 256
    NARRATION = 512
    """An assistant telling what it is about to do, or asking for what it needs."""
    OUTCOME = 1024
    """Something was done, or failed."""
    FILLER = 2048
    """Greeting, thanks, an offer to help."""
    FIRST_PERSON = 4096
    QUESTION = 8192
    HEALTH = 16384
    """What a body does not bear, a condition, a diet that is kept."""
    STANDING = 32768
    """An order for all that follows: never, always, from now on."""
    CONTACT = 65536
    """How to reach somebody, what they go by: address, number, account, order, name, where they live."""
    LIMIT = 131072
    """How much, how many, until when."""
    MUSING = 262144
    """Trying, wondering, telling how far one has come: it binds nobody."""
    RETRACTS = 524288
    """A person's sentence that takes something back, whatever else it says."""
    LABELS = 1048576
    """A person's sentence that says what a value is a value of."""
