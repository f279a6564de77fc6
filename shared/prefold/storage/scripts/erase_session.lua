-- erase_session(now, label, tombstone_ms, incarnation, when) -> {'ok', incarnation, turns, forks, origin} | {'erased' | 'unknown' | 'alive'}
-- Removes every key of the session but its tombstone, whose epoch is raised: late builders are refused. Without
-- `incarnation` the caller wants it gone: the tombstone says `erased`, and appends are refused until an explicit open.
-- With one the session ends by its age: only that life, only if its time has come ('alive' otherwise), and an append
-- may begin anew; `when` 'unchecked': a fork at once, as long as nobody was told of it; 'asked': that life, if it is the
-- one that lives, as without `incarnation`. `forks`: names of the sessions made of it, a line each. Twice is harmless.
-- A due entry `expire` stays until the vectors are gone too.
-- Keys: all of the session. Atomic, because nobody may read or write between two of the deletions.
local now, label, by_age = clock(ARGV[1]), ARGV[2], ARGV[4] ~= '' and ARGV[5] ~= 'asked'
local m = load_state()
if not m then return { redis.call('HGET', TOMB, 'erased') == '1' and 'erased' or 'unknown' } end
local who = life(label, m)
if ARGV[4] ~= '' and m.inc ~= ARGV[4] then return { 'unknown' } end
if by_age then
  local at = tonumber(redis.call('ZSCORE', DUE, 'expire:' .. who) or nil)
  if ARGV[5] == 'unchecked' then at = redis.call('HEXISTS', META, 'unchecked') == 1 and now end
  if not at or at > now then return { 'alive' } end
else
  redis.call('HSET', TOMB, 'erased', 1)
end
redis.call('HINCRBY', TOMB, 'epoch', 1)
redis.call('HSET', TOMB, 'end:' .. m.inc, now)
redis.call('PEXPIREAT', TOMB, now + tonumber(ARGV[3]))
local turns = redis.call('XLEN', TURNS)
local forks, origin, user = unpack(redis.call('HMGET', META, 'forks', 'forked_from', 'user'))
-- What was learnt of these turns goes too, unless they only grew old: whoever looks again later must know of whom.
if user then redis.call('HSET', TOMB, (by_age and 'aged:' or 'user:') .. m.inc, user) end
redis.call('UNLINK', META, TURNS, IDS, CONTEXT, NEXT, STANDBY, SUMMARIES, SEGMENTS, KEYS[12], KEYS[13], KEYS[14])
redis.call('ZREM', DUE, 'embed:' .. who, 'compact:' .. who, 'remember:' .. who)
redis.call('ZADD', DUE, now + ERASE_GRACE_MS, 'expire:' .. who)
return { 'ok', m.inc, turns, forks or '', origin or '' }
