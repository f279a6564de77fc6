-- erase_session(now, label, tombstone_ms, incarnation) -> {'ok', incarnation, turns} | {'erased' | 'unknown' | 'alive'}
-- Removes every key of the session but its tombstone, whose epoch is raised: late builders are refused. Without
-- `incarnation` the caller wants it gone: the tombstone says `erased`, and appends are refused until an explicit open.
-- With one the session ends by its age: only that life, only if its time has come ('alive' otherwise), and an append
-- may begin anew. Twice is harmless. A due entry `expire` stays until the vectors are gone too.
-- Keys: all of the session. Atomic, because nobody may read or write between two of the deletions.
local now, label, by_age = clock(ARGV[1]), ARGV[2], ARGV[4] ~= ''
local m = load_state()
if not m then return { redis.call('HGET', TOMB, 'erased') == '1' and 'erased' or 'unknown' } end
local who = life(label, m)
if by_age then
  if m.inc ~= ARGV[4] then return { 'unknown' } end
  local at = redis.call('ZSCORE', DUE, 'expire:' .. who)
  if not at or tonumber(at) > now then return { 'alive' } end
else
  redis.call('HSET', TOMB, 'erased', 1)
end
redis.call('HINCRBY', TOMB, 'epoch', 1)
redis.call('PEXPIREAT', TOMB, now + tonumber(ARGV[3]))
local turns = redis.call('XLEN', TURNS)
redis.call('UNLINK', META, TURNS, IDS, CONTEXT, NEXT, STANDBY, SUMMARIES)
redis.call('ZREM', DUE, 'embed:' .. who, 'compact:' .. who)
redis.call('ZADD', DUE, now + ERASE_GRACE_MS, 'expire:' .. who)
return { 'ok', m.inc, turns }
