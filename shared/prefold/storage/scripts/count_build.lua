-- count_build(limit) -> 0 | ms
-- 0: the build is one of this hour's (UTC), and counted; else the time until the next hour begins.
-- Keys: the tenant's quota, a hash: hour and builds. It ends two days after its last use. Time is the server's; one that
-- was set back begins no earlier hour anew. Atomic, because two workers must not take the last build.
-- Not idempotent: what a client sends twice is counted twice, which only makes the quota stricter.
local QUOTA = KEYS[1]
local HOUR_MS = 3600000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local this = math.floor(now / HOUR_MS)
local known = redis.call('HMGET', QUOTA, 'hour', 'builds')
local hour, builds = tonumber(known[1] or this), tonumber(known[2] or 0)
if hour < this or hour > this + 1 then builds = 0 else this = hour end
if builds >= tonumber(ARGV[1]) then return math.max(1, (this + 1) * HOUR_MS - now) end
redis.call('HSET', QUOTA, 'hour', string.format('%.0f', this), 'builds', string.format('%.0f', builds + 1))
redis.call('PEXPIRE', QUOTA, 172800000)
return 0
