-- refuse_ingest(entry id, session, why, keep_text, kept_ms, most_letters, most_bytes) -> -1 | number of letters given up
-- Moves an entry that cannot be applied out of the stream to the dead letters. Of too many the oldest go. -1: the entry
-- is gone, by an erasure or another reader's hand: no letter is written. One that names several sessions is never kept:
-- the erasure of each would have to find it.
-- Keys: ingest, ingest_dead, ingest_dead_why, ingest_dead_text. Atomic, because an erasure must find the words in one of
-- both places.
local id, name, now = ARGV[1], ARGV[1] .. ' ' .. ARGV[2], now_ms()
local entry = redis.call('XRANGE', INGEST, id, id)[1]
if not entry then return -1 end
redis.call('XDEL', INGEST, id)
if redis.call('XLEN', INGEST) == 0 then redis.call('UNLINK', INGEST) end
redis.call('ZADD', DEAD, now, name)
redis.call('HSET', WHY, name, ARGV[3])
local sessions = 0
for i = 1, #entry[2], 2 do
  if entry[2][i] == 'session' then sessions = sessions + 1 end
end
if ARGV[4] == '1' and sessions <= 1 and #entry[2] <= 1000 then
  local sizes = {}
  for i, part in ipairs(entry[2]) do sizes[i] = #part end
  local text = table.concat(sizes, ' ') .. '\n' .. table.concat(entry[2])
  redis.call('HSET', TEXT, name, text)
  redis.call('HINCRBY', TEXT, 'bytes', #text)
end
remove_older(now - tonumber(ARGV[5]))
local given_up = 0
while redis.call('ZCARD', DEAD) > 1 and (redis.call('ZCARD', DEAD) > tonumber(ARGV[6])
    or tonumber(redis.call('HGET', TEXT, 'bytes') or 0) > tonumber(ARGV[7])) do
  given_up = given_up + remove_letter(redis.call('ZRANGE', DEAD, 0, 0)[1])
end
for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[5]) end
return given_up
