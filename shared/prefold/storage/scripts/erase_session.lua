-- erase_session(now, label, tombstone_ms) -> {'ok', incarnation, turns} | {'erased'} | {'unknown'}
-- Removes every key of the session but its tombstone, which says `erased` and has a raised epoch: late builders are
-- refused, appends too until an explicit open. Twice is harmless: 'erased'.
-- Keys: all of the session. Atomic, because nobody may read or write between two of the deletions.
local now, label = clock(ARGV[1]), ARGV[2]
local m = load_state()
if not m then return { redis.call('HGET', TOMB, 'erased') == '1' and 'erased' or 'unknown' } end
redis.call('HINCRBY', TOMB, 'epoch', 1)
redis.call('HSET', TOMB, 'erased', 1)
redis.call('PEXPIREAT', TOMB, now + tonumber(ARGV[3]))
local turns = redis.call('XLEN', TURNS)
redis.call('UNLINK', META, TURNS, IDS, CONTEXT, NEXT, STANDBY, SUMMARIES)
for _, kind in ipairs({ 'embed:', 'compact:' }) do redis.call('ZREM', DUE, kind .. life(label, m)) end
return { 'ok', m.inc, turns }
