-- settle_spending(id, name, count, …) -> 1 | 0
-- What was set aside for the call is free again, and what it really took is added to the fields named.
-- 0: it was settled before; nothing changes.
-- Keys: the tenant's day, as in reserve_spending. Atomic, because nothing may be counted twice or be free in between.
local DAY = KEYS[1]
local field = 'r:' .. ARGV[1]
local held = redis.call('HGET', DAY, field)
if not held then return 0 end
redis.call('HDEL', DAY, field)
if held ~= '0' then redis.call('HINCRBY', DAY, 'held', '-' .. held) end
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] ~= '0' then redis.call('HINCRBY', DAY, ARGV[i], ARGV[i + 1]) end
end
return 1
