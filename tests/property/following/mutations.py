"""Scripts with one guard cut out, to see that the tests would notice."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prefold.storage.scripts import _LIBRARIES, script

__all__ = ["MUTATIONS", "Mutation", "mutated"]


@dataclass(frozen=True)
class Mutation:
    """``old``, as it stands in the scripts, becomes ``new`` everywhere; perhaps a second piece with it."""

    guard: str
    old: str
    new: str
    also: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        return self.guard


@contextmanager
def mutated(mutation: Mutation) -> Iterator[None]:
    """The scripts of this process are so meanwhile. It is an error when none has ``old``."""
    originals = [(one, one.source, one.sha) for one in map(script, _LIBRARIES) if mutation.old in one.source]
    assert originals, f"no script has {mutation.old!r}: the mutation is out of date"
    for one, source, _ in originals:
        changed = source.replace(mutation.old, mutation.new)
        changed = changed.replace(*mutation.also) if mutation.also[0] else changed
        object.__setattr__(one, "source", changed)
        object.__setattr__(one, "sha", hashlib.sha1(changed.encode(), usedforsecurity=False).hexdigest())
    assert any(mutation.also[0] in source for _, source, _ in originals), f"no script has {mutation.also[0]!r}"
    try:
        yield
    finally:
        for one, source, sha in originals:
            object.__setattr__(one, "source", source)
            object.__setattr__(one, "sha", sha)


MUTATIONS = [
    # Builds
    Mutation(
        "a commit compares the incarnation",
        "m.inc ~= incarnation or redis.call('HGET', TOMB, 'epoch') ~= ARGV[4] then return { 'stale' }",
        "redis.call('HGET', TOMB, 'epoch') ~= ARGV[4] then return { 'stale' }",
    ),
    Mutation(
        "a commit compares the epoch",
        "or redis.call('HGET', TOMB, 'epoch') ~= ARGV[4] then return { 'stale' }",
        "then return { 'stale' }",
    ),
    Mutation(
        "a build's start raises the epoch",
        "local epoch = redis.call('HINCRBY', TOMB, 'epoch', 1)",
        "local epoch = redis.call('HINCRBY', TOMB, 'epoch', 0)",
    ),
    Mutation("a commit needs its record", "if m.bcov ~= covers_to then return { 'stale' } end", ""),
    Mutation("a commit ends its record", "m.bcov, m.blease, m.retry, m.rest = 0, 0, 0, 0", ""),
    Mutation(
        "a commit checks its cut: before a result",
        "if #entries == 0 and m.open ~= '' or #entries > 0 and not entries[1].cut then return { 'stale' } end",
        "",
    ),
    Mutation(
        "a commit checks its cut: newest user turn",
        "if covers_to >= m.lu and m.lu > 0 and m.lu ~= m.fu and not carries then return { 'stale' } end",
        "",
    ),
    Mutation(
        "a commit takes a hole after its cut",
        "if #entries == 0 and m.open ~= ''",
        "if #entries == 0 or entries[1].seq ~= covers_to + 1 or m.open ~= '' and #entries == 0",
    ),
    Mutation("a commit gains", "if tokens >= m.full then return { 'no_gain' } end", ""),
    Mutation(
        "a commit to a degraded session swaps", "if m.deg == 1 or m.full > room(m) then swapped = refit(m) end", ""
    ),
    Mutation("one build in flight", "if m.blease > now then", "if false then"),
    Mutation(
        "a renewal and giving back compare incarnation and epoch",
        "m.inc ~= incarnation or redis.call('HGET', TOMB, 'epoch') ~= ARGV[4] or m.bcov == 0 then return 0",
        "m.bcov == 0 then return 0",
    ),
    Mutation("a renewal needs the record", "or m.bcov == 0 then return 0", "then return 0"),
    Mutation(
        "a cut covers something new", "(math.max(m.cov, m.nx) + 1) .. '-0', 'COUNT', 1)[1]", "'-', 'COUNT', 1)[1]"
    ),
    Mutation(
        "a cut does not cover the newest user turn",
        "if covers_newest and not carries and m.log - m.lucum <= soft_room(m) then return false end",
        "",
    ),
    Mutation(
        "a degraded session may cover it", "if covers_to == 0 and m.deg == 1 then covers_to = find_cut(true) end", ""
    ),
    Mutation("no cut before a result", "t.is_cut = t.matched == 0", "t.is_cut = true"),
    # Changes
    Mutation("a change inside raises the epoch", "if math.max(m.bcov, m.nx) > intact then", "if false then"),
    Mutation("a change above leaves the epoch alone", "if math.max(m.bcov, m.nx) > intact then", "if true then"),
    Mutation("a change inside ends the record", "if m.bcov > intact then m.bcov, m.blease = 0, 0 end", ""),
    Mutation("a change is counted", "m.chg = m.chg + 1", ""),
    Mutation(
        "a change inside drops the standby",
        "if m.nx > intact or not stands(m, summary) then return drop_standby(m) end",
        "if not stands(m, summary) then return drop_standby(m) end",
    ),
    Mutation(
        "a change checks the standby's cut again",
        "if m.nx > intact or not stands(m, summary) then return drop_standby(m) end",
        "if m.nx > intact then return drop_standby(m) end",
    ),
    Mutation("a change rewrites the standby's context", "redis.call('SET', NEXT, text, 'KEEPTTL')", ""),
    Mutation(
        "a change inside falls back",
        "if summary.covers_to <= intact and stands(m, summary) then",
        "if stands(m, summary) then",
    ),
    Mutation(
        "a change checks the summaries' cuts again",
        "if summary.covers_to <= intact and stands(m, summary) then",
        "if summary.covers_to <= intact then",
    ),
    Mutation("summaries of a changed range are removed", "    redis.call('HDEL', SUMMARIES, version)\n", ""),
    Mutation("no summary where a call is left open", "    if m.open ~= '' then return false end\n", ""),
    Mutation(
        "the newest user turn stands or is carried",
        "return m.lu == 0 or m.lu > summary.covers_to or m.lu == m.fu or summary.carries",
        "return true",
    ),
    Mutation("a change ends with a refit", "  m.tok = m.full\n  return refit(m)", "  restore(m)\n  return false"),
    Mutation("a removed turn is no user turn any more", "if op == 'remove' and cut == '2' then cut = '1' end", ""),
    # Steps of a change
    Mutation(
        "a step goes on with its own copy",
        "if stage and stage.token == token and stage.chg == changes then return stage end",
        "if stage and stage.chg == changes then return stage end",
    ),
    Mutation(
        "a step after the first compares the incarnation",
        "if ARGV[3] ~= '' and ARGV[3] ~= m.inc then return { 'none' } end",
        "",
    ),
    Mutation(
        "a copy is published when it is whole", "if not copy(stage) then", "if not copy(stage) and stage.last == 0 then"
    ),
    Mutation(
        "another one's copy is not gone on with", "  drop_stage()\n  return { token = token", "  return { token = token"
    ),
    Mutation(
        "a copy that another change overtook is ended by that, or refused",
        "stage.token == token and stage.chg == changes",
        "stage.token == token",
        ("if load_stage() then drop_stage() end", ""),
    ),
    Mutation(
        "a rewound id is refused",
        "if not known[t.id] and is_rewound(tonumber(seq)) then return { 'rewound', t.id } end",
        "",
    ),
    # Contexts
    Mutation("the first turn after a cut loses its closer", "if e.closer and not first then", "if e.closer then"),
    Mutation("the ladder keeps the newest user turn", "    keep(m.lu, 'task')\n", ""),
    Mutation("a newer task takes the place of one that was carried", "    added = added - drop_carried(head)\n", ""),
    Mutation("the gap is marked", "    out[#out + 1], sum = gap_line(gap_first, gap_last), sum + GAP_TOKENS\n", ""),
    Mutation("the marker has room", "local total = hold_all(entries) + GAP_TOKENS", "local total = hold_all(entries)"),
    Mutation("not even the newest group may fit", "if total > limit and #entries > 0 then", "if false then"),
    Mutation("an append ends with a refit", "swapped = refit(m)\n  if asked", "swapped = false\n  if asked"),
    Mutation("a new limit ends with a refit", "  refit(m, room(m) > room_before)\n", ""),
    Mutation("a higher limit brings the whole back", "if m.deg == 1 and m.full <= room(m) then restore(m) end", ""),
    Mutation(
        "no swap inside a thinking round", "return m.nx > 0 and not (m.open ~= '' and m.thinks == 1)", "return m.nx > 0"
    ),
    Mutation(
        "a swap leaves the epoch alone",
        "  m.ver, m.swaps = m.ver + 1, m.swaps + 1\n",
        "  m.ver, m.swaps = m.ver + 1, m.swaps + 1\n  redis.call('HINCRBY', TOMB, 'epoch', 1)\n",
    ),
    # Ends and forks
    Mutation(
        "an erasure drops the summaries",
        "CONTEXT, NEXT, STANDBY, SUMMARIES, SEGMENTS, KEYS[12], KEYS[13], KEYS[14])",
        "CONTEXT, NEXT, STANDBY, SEGMENTS, KEYS[12], KEYS[13], KEYS[14])",
    ),
    Mutation(
        "an erasure drops the standby",
        "CONTEXT, NEXT, STANDBY, SUMMARIES, SEGMENTS, KEYS[12], KEYS[13], KEYS[14])",
        "CONTEXT, SUMMARIES, SEGMENTS, KEYS[12], KEYS[13], KEYS[14])",
    ),
    Mutation(
        "an erasure drops a staged copy",
        "CONTEXT, NEXT, STANDBY, SUMMARIES, SEGMENTS, KEYS[12], KEYS[13], KEYS[14])",
        "CONTEXT, NEXT, STANDBY, SUMMARIES, SEGMENTS, KEYS[14])",
    ),
    Mutation(
        "an erasure raises the epoch",
        "redis.call('HINCRBY', TOMB, 'epoch', 1)\nredis.call('HSET', TOMB, 'end:'",
        "redis.call('HSET', TOMB, 'end:'",
    ),
    Mutation("a fork is refitted", "fall_back(m, m.head)\nrebuild(m)", "fall_back(m, m.head)\nrestore(m)"),
    Mutation(
        "a repeated fork looks at its source",
        "return { 'same', existing[3], existing[4] or '' }",
        "return { 'same', existing[3], '' }",
    ),
]
