-- set_aside(now, label, incarnation, kind, record, most, kept_ms, again_ms) -> 1 | 0
-- Takes work out of `due` that its workers did not survive, or that fails again and again, and keeps why. With an empty
-- record: takes it out again if it is still set aside. An end by age is only put off, by again_ms: what has to be
-- erased is tried for ever. Of more than `most` records the one set aside longest ago goes.
-- 0: that life of the session is over, or nothing was set aside.
-- Keys: meta, due, dead. Atomic, because a change of the session or a replay must not lose its due entry.
local now, label, incarnation, kind, record = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local DEAD = KEYS[12]
local m = load_state()
local field = kind .. ':' .. label .. ':' .. incarnation
if kind ~= 'expire' and (not m or m.inc ~= incarnation) then
  redis.call('HDEL', DEAD, field)
  redis.call('ZREM', DUE, field)
  return 0
end
if record == '' and redis.call('HEXISTS', DEAD, field) == 0 then return 0 end
if kind == 'expire' then
  redis.call('ZADD', DUE, 'XX', string.format('%d', now + tonumber(ARGV[8])), field)
else
  redis.call('ZREM', DUE, field)
end
if record == '' then return 1 end

-- A record begins with the time at which it was made.
local function made_at(text) return tonumber(string.match(text, '^{"at_ms":(%d+)')) or 0 end
redis.call('HSET', DEAD, field, record)
redis.call('PEXPIRE', DEAD, ARGV[7])
local oldest, least = nil, math.huge
local all = redis.call('HGETALL', DEAD)
for i = 1, #all, 2 do
  local at = made_at(all[i + 1])
  if now - at > tonumber(ARGV[7]) then
    redis.call('HDEL', DEAD, all[i])
  elseif at < least and all[i] ~= field then
    oldest, least = all[i], at
  end
end
if oldest and redis.call('HLEN', DEAD) > tonumber(ARGV[6]) then redis.call('HDEL', DEAD, oldest) end
return 1
