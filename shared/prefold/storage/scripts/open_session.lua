-- open_session(now, new_incarnation, label, retention_ms, "hard ratio keep idle_ms lead_ms" of a new one, count, (name, value)…)
--   -> {'ok'} | {'conflict'} | {'no_room', free raw tokens} | {'changing'}
-- Creates the session (also after an erase) or changes it. Names: user, model, hard, ratio, keep, system, systok,
-- tools, tooltok, metadata, shared_prefix, adaptive (1: no longer a fixed ratio), idle (ms), state_cap, proposals. A lower limit refits at once.
-- Keys: all of the session; they end with its retention. Atomic, because limit and context must agree.
local now, label, retention = clock(ARGV[1]), ARGV[3], tonumber(ARGV[4])
local given = {}
for i = 0, tonumber(ARGV[6]) - 1 do given[ARGV[7 + 2 * i]] = ARGV[8 + 2 * i] end

local m = load_state()
local created = not m
if m then
  if is_unsure(m) then return { 'changing' } end
  local user = redis.call('HGET', META, 'user')
  if given.user and user and user ~= given.user then return { 'conflict' } end
else
  m = new_state(ARGV[2], now, ARGV[5])
end

local before, room_before = m.hard .. ' ' .. m.fix, room(m)
local stored = redis.call('HMGET', META, 'system', 'tools', 'user', 'model', 'shared_prefix')
-- What the chat's provider caches a prefix by: under another version nothing of before is taken for cached.
local function differs(name, i) return given[name] and given[name] ~= (stored[i] or '') end
local changes = differs('system', 1) or differs('tools', 2) or differs('model', 4) or differs('shared_prefix', 5)
m.hard = tonumber(given.hard) or m.hard
if given.ratio then m.ratio, m.adapt = tonumber(given.ratio), 0 end
if given.adaptive then m.adapt = 1 end
m.keep = tonumber(given.keep) or m.keep
m.idle = tonumber(given.idle) or m.idle
m.systok = tonumber(given.systok) or m.systok
m.tooltok = tonumber(given.tooltok) or m.tooltok
m.fix = fixed(m)
cap_calibration(m)
if m.hard - m.fix < 2 * MIN_ROOM then return { 'no_room', m.hard - 2 * MIN_ROOM - (m.fix - m.systok - m.tooltok) } end

for _, name in ipairs({ 'user', 'model', 'system', 'tools', 'metadata', 'shared_prefix', 'state_cap', 'proposals' }) do
  if given[name] then redis.call('HSET', META, name, given[name]) end
end
if created then
  redis.call('HDEL', TOMB, 'erased')
  redis.call('HSET', META, 'incarnation', m.inc, 'label', label)
  redis.call('SET', CONTEXT, header(m, 0, 0))
  m.bytes = redis.call('STRLEN', CONTEXT)
elseif changes or before ~= m.hard .. ' ' .. m.fix then
  m.ver = m.ver + 1
  redis.call('SETRANGE', CONTEXT, 11, string.format('%-10d', m.ver))
  refit(m, room(m) > room_before)
  m.nocut, m.rest = 0, 0
end
if given.user and not stored[3] and m.head > 0 then
  -- What is embedded does not name the user yet, nor does what an embedder has in hand.
  redis.call('HDEL', META, 'embedded')
  m.chg = m.chg + 1
  redis.call('ZADD', DUE, now, 'embed:' .. life(label, m))
  m.edue = 1
end
if given.idle and m.idle > 0 and m.head > 0 then remember_by(m, label, now + m.idle) end
if given.user and not stored[3] and m.head > 0 then owe_memory(m, label, now, 1, m.head) end  -- nobody's facts were kept
note_pace(m, 0, now)
m.updated = now
if build_wanted(m) then
  if m.want == 0 then m.want = now end
  redis.call('ZADD', DUE, 'LT', now, 'compact:' .. life(label, m))
end
extend_life(m, label, now, retention, created)
save_state(m)
return { 'ok' }
