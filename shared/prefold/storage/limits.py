"""Numbers of the protocol that the scripts and their callers share."""

from datetime import timedelta

DEFAULT_HARD_LIMIT_TOKENS = 100_000
LEAST_HARD_LIMIT_TOKENS = 1_000
MOST_HARD_LIMIT_TOKENS = 10_000_000
SOFT_RATIO_BOUNDS = (0.4, 0.85)
"""Share of the room (limit less system and tools) at which a standby is built. Where the session was given none, it
is as late as the tokens still free outlast a build at the session's pace."""
LEAD_FACTOR = 2.5
"""So many times the 95th percentile of build times is kept free: builds are seldom much slower, and a failed one is
begun again."""
PACE_MEMORY = timedelta(minutes=5)
"""What came so long ago counts about a third in the pace."""
PACE_LEAST = timedelta(seconds=10)
"""A younger session's pace is taken as if it were so old."""
DEFAULT_LEAD = timedelta(seconds=5)
"""How long a build takes while nothing is known of it."""
BUILD_TIMES_KEPT = 200
"""Measured builds of a tenant, the newest, and"""
BUILD_TIMES_END = timedelta(days=14)
"""how long they are of use."""
DEFAULT_KEEP_RECENT_TURNS = 6
RETENTION = timedelta(days=30)
"""A session's keys end this long after its last turn."""
TOMBSTONE_EXTRA = timedelta(days=60)
"""A tombstone outlives its session by this, so that a late builder meets it."""

LOW_MARK = 0.75
"""Share of the room that the ladder comes down to, so that it does not run at each turn."""
REFRESH_STEP = 0.05
"""Share of the room by which a standby's uncovered tail grows before it is built again."""
TAIL_SHARE = 0.1
"""Share of the room at which the verbatim tail is enough, even with fewer turns than asked for."""
COVER_SHARE = 0.1
"""Share of the room that a build has to cover anew, and"""
LEAST_COVERED_TOKENS = 200
"""raw tokens that it has to cover at least: a head is not made for less."""
LEAST_ROOM_TOKENS = 300
"""Raw tokens that the newest turn's short form, a marker and their overheads need."""
SYSTEM_SHARE = 0.75
"""Share of the limit that leading system turns may take as system prompt."""
EVENTS_KEPT = 10_000
"""Length at which a partition's event stream is capped. A dropped event costs time, never work."""
TRIM_EVERY = 32
"""The stream is trimmed by one append in this many, on average."""
MOST_CONTEXT_BYTES = 256 * 1024 * 1024
"""Length of a context string. Redis takes 512 MiB; only media in the turns can come near."""
APPEND_FITTED_BYTES = 64 * 1024
"""A context string up to here is made as small as it can be by each append,"""
MARK_FITTED_BYTES = 256 * 1024
"""a longer one, up to here, by the mark of the embedding some seconds later, and"""
FITTED_BYTES = 1024 * 1024
"""one up to here when its session closes: Redis reserves for a longer one no more than so much beyond it, and copying
it would hold the others up."""
USAGE_FLOOR_TOKENS = 2_000
"""A reported usage teaches the calibration only from contexts of at least this many raw tokens."""
MOST_CALIBRATION = 4_000
"""Thousandths."""
EXPIRE_AHEAD = timedelta(hours=1)
"""So long before the keys' end (at most a tenth of the retention) a session is erased in order, vectors included."""
ERASE_GRACE = timedelta(seconds=30)
"""After this a worker finishes an erasure that its caller did not."""
EMBED_GRACE = timedelta(seconds=3)
"""After this the reconciler takes a turn whose event nobody worked on."""
STAGE_HELD = timedelta(seconds=3)
"""So long after its last step a change of stored turns keeps others from beginning theirs."""
STAGE_ENDS = timedelta(minutes=1)
"""A staged copy whose maker died ends then."""
STAGE_ENTRIES = 128
"""Log entries, and"""
STAGE_BYTES = 1024 * 1024
"""bytes that one step of a change copies at most, one entry more or less: it bounds how long Redis is held up."""
SHARED_ENTRIES = 100
"""Entries, or"""
SHARED_BYTES = 16 * 1024
"""bytes that one node of a stream may hold at most: twice what our settings say (``stream-node-max-bytes``). A rewind
looks no further back for what shares a node with the turns that it takes out."""
MOST_PURGES = 50
"""Ranges of changed turns whose vectors have to go; more are joined into one."""
MOST_REDONE = 1_000
"""Changed turns that are embedded anew by name; more move the embedded mark back."""
MOST_COLLECTIONS = 2
"""Collections whose embedded mark a session keeps, so that workers of two embedders do not begin anew in turns."""

CLOSE_AFTER = timedelta(minutes=30)
"""A session without a turn for so long is closed, unless it was given another time."""
STATE_CAP_TOKENS = 250
"""Raw tokens that a session's pinned state may take, unless it was given another number."""
MEMORY_RETENTION = timedelta(days=400)
"""What is known of a user ends so long after it changed last."""
MOST_SUPPRESSED = 5_000
"""Deleted statements of a user that are not learnt again, the newest."""
CONTEXTS_KEPT = 20
"""Records of served contexts that a session keeps, the newest, and"""
CONTEXTS_END = timedelta(days=7)
"""how long after the last one."""

MOST_ASIDE = 200
"""Records of work that was set aside in one partition; of more the oldest goes, and its work gets another three starts."""
ASIDE_KEPT = timedelta(days=30)
"""A record ends then."""
EXPIRY_AGAIN = timedelta(hours=6)
"""After this the end of a session that its workers did not survive is tried again: what must be erased is never given up."""
DROPS_KEPT = timedelta(days=30)
"""The count of dropped events ends when none has been dropped for so long."""

INGEST_LETTERS = 1_000
"""Dead letters of a tenant's ingest stream, and"""
INGEST_LETTER_BYTES = 64 * 1024 * 1024
"""bytes of their entries; of more the oldest go."""
INGEST_USED = RETENTION + TOMBSTONE_EXTRA
"""So long after its last entry an erasure also sees to the files of a tenant's ingest stream."""
LETTERS_KEPT = timedelta(days=30)
"""Such a letter ends then."""

SPENDING_KEPT = timedelta(days=400)
"""What model calls took on a day is kept so long: a year, and time to close its books."""
USAGE_SEEN = 64
"""Newest model calls that a session remembers, so that one that is noted again counts once."""
CALL_ID_CHARACTERS = 12
MODEL_GATE_KEPT = timedelta(days=1)
"""After so long without a call the workers know nothing of a provider's key any more."""


def milliseconds(duration: timedelta) -> int:
    """Whole milliseconds of a duration."""
    return int(duration.total_seconds() * 1000)


def lua_constants() -> dict[str, int | float]:
    """What the scripts see of them."""
    return {
        "DAY_MS": 86_400_000,
        "TOMB_EXTRA_MS": milliseconds(TOMBSTONE_EXTRA),
        "LOW_MARK": LOW_MARK,
        "REFRESH_STEP": REFRESH_STEP,
        "LEAST_RATIO": round(SOFT_RATIO_BOUNDS[0] * 1000),
        "MOST_RATIO": round(SOFT_RATIO_BOUNDS[1] * 1000),
        "LEAD_FACTOR": LEAD_FACTOR,
        "PACE_MS": milliseconds(PACE_MEMORY),
        "PACE_LEAST_MS": milliseconds(PACE_LEAST),
        "TAIL_SHARE": TAIL_SHARE,
        "COVER_SHARE": COVER_SHARE,
        "MIN_COVERED": LEAST_COVERED_TOKENS,
        "MIN_ROOM": LEAST_ROOM_TOKENS,
        "SYSTEM_SHARE": SYSTEM_SHARE,
        "EVENTS_KEPT": EVENTS_KEPT,
        "TRIM_EVERY": TRIM_EVERY,
        "MOST_BYTES": MOST_CONTEXT_BYTES,
        "FITTED_BYTES": FITTED_BYTES,
        "APPEND_FITTED_BYTES": APPEND_FITTED_BYTES,
        "MARK_FITTED_BYTES": MARK_FITTED_BYTES,
        "USAGE_FLOOR": USAGE_FLOOR_TOKENS,
        "USAGE_SEEN_BYTES": USAGE_SEEN * (CALL_ID_CHARACTERS + 1),
        "MOST_CALIBRATION": MOST_CALIBRATION,
        "EXPIRE_AHEAD_MS": milliseconds(EXPIRE_AHEAD),
        "ERASE_GRACE_MS": milliseconds(ERASE_GRACE),
        "STAGE_HELD_MS": milliseconds(STAGE_HELD),
        "STAGE_ENDS_MS": milliseconds(STAGE_ENDS),
        "UNSURE": 2,
        "SHARED_ENTRIES": SHARED_ENTRIES,
        "SHARED_BYTES": SHARED_BYTES,
        "MOST_PURGES": MOST_PURGES,
        "MOST_SUPPRESSED": MOST_SUPPRESSED,
        "MOST_REDONE": MOST_REDONE,
        "MOST_COLLECTIONS": MOST_COLLECTIONS,
    }
