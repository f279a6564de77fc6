-- lease_quota(rate, burst, turns_owed, turns_wanted, day_limit, tokens_owed, tokens_wanted)
--   -> {turns, turns_wait_ms, tokens, day_left_ms}
-- Counts what a gateway let through already, whatever is left, and grants of what is left at most what is wanted. `rate`
-- is turns a second and `burst` what may gather of them; '' as rate or day_limit: not asked for. An owed number below
-- zero gives back. turns_wait_ms: until a turn is there again; day_left_ms: until the day (UTC) ends.
-- Keys: the tenant's quota, a hash: level and at (ms) of the turns, day and used of the tokens. It ends two days after
-- its last use. Time is the server's; one that was set back neither refills nor begins an earlier day anew.
-- Atomic, because gateways at the same time must not be granted the same turns.
-- Not idempotent: what a client sends twice is counted twice, which only makes the quota stricter.
local QUOTA = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local DAY_MS = 86400000
local turns, wait, tokens = 0, 0, 0

local function granted(left, wanted)
  return math.max(0, math.min(math.floor(left), tonumber(wanted)))
end

if ARGV[1] ~= '' then
  local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
  local known = redis.call('HMGET', QUOTA, 'level', 'at')
  local level, at = tonumber(known[1] or burst), tonumber(known[2] or now)
  level = math.min(burst, level + math.max(0, now - at) / 1000 * rate) - tonumber(ARGV[3])
  turns = granted(level, ARGV[4])
  level = level - turns
  if level < 1 and rate > 0 then wait = math.ceil((1 - level) / rate * 1000) end
  redis.call('HSET', QUOTA, 'level', string.format('%.6f', level), 'at', string.format('%.0f', now))
end

local today = math.floor(now / DAY_MS)
if ARGV[5] ~= '' then
  local known = redis.call('HMGET', QUOTA, 'day', 'used')
  local day, used = tonumber(known[1] or today), tonumber(known[2] or 0)
  if day < today or day > today + 1 then used = 0 else today = day end
  used = math.max(0, used + tonumber(ARGV[6]))
  tokens = granted(tonumber(ARGV[5]) - used, ARGV[7])
  redis.call('HSET', QUOTA, 'day', string.format('%.0f', today), 'used', string.format('%.0f', used + tokens))
end
redis.call('PEXPIRE', QUOTA, 2 * DAY_MS)
return { turns, wait, tokens, (today + 1) * DAY_MS - now }
