-- mark_embedded(now, label, incarnation, upto, collection, grace_ms) -> 1 | 0
-- Notes that the turns up to `upto` are embedded in `collection`; its due entry goes once that is all of them.
-- 0: this life of the session is over; what was written for it must be undone.
-- Keys: meta, due. Atomic, because an append in between must not lose its due entry.
local m = load_state()
if not m or m.inc ~= ARGV[3] then
  redis.call('ZREM', DUE, 'embed:' .. ARGV[2] .. ':' .. ARGV[3])
  return 0
end
local upto = tonumber(ARGV[4])
local stored = redis.call('HGET', META, 'embedded')
if stored then
  local seq, collection = string.match(stored, '^(%d+) (.*)$')
  if collection == ARGV[5] then upto = math.max(upto, tonumber(seq)) end
end
redis.call('HSET', META, 'embedded', upto .. ' ' .. ARGV[5])
local member = 'embed:' .. life(ARGV[2], m)
if upto < m.head then
  redis.call('ZADD', DUE, clock(ARGV[1]) + tonumber(ARGV[6]), member)
else
  redis.call('ZREM', DUE, member)
  m.edue = 0
  save_state(m)
end
return 1
