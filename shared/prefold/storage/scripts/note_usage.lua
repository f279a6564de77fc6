-- note_usage(incarnation, id, calls, input, cache_read, cache_write, output, micro_usd) -> 1 | 0
-- Adds what a model call took to the session's field `usage`. 0: this life of the session is over, or the call was
-- noted before; nothing is written then.
-- Keys: meta. Atomic, because an erased session must not come back, and calls at the same time must all count.
local m = load_state()
if not m or m.inc ~= ARGV[1] then return 0 end
local seen = redis.call('HGET', META, 'usage_seen') or ''
if string.find(seen, ARGV[2], 1, true) then return 0 end
local sums, at = {}, 3
for number in string.gmatch(redis.call('HGET', META, 'usage') or '0 0 0 0 0 0', '%S+') do
  sums[#sums + 1] = string.format('%d', tonumber(number) + tonumber(ARGV[at]))
  at = at + 1
end
-- A call is sent again within seconds if at all: the newest ones are enough.
seen = string.sub(ARGV[2] .. ' ' .. seen, 1, USAGE_SEEN_BYTES)
redis.call('HSET', META, 'usage', table.concat(sums, ' '), 'usage_seen', seen)
return 1
