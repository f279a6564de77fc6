-- begin_memory(now, label, incarnation, lease_ms)
--   -> {'ok', user, remembered, upto, head, closing, forget, chg, epoch, hard, cal, spoken, fu, copied} | {reason, when_ms}
-- Reasons: gone, none, busy, later. Leave to take out of the log what is worth remembering: turns that a summary covers,
-- or all of them when the session closes, because it was asked to or has been idle.
-- Keys: meta, tomb, due. Atomic, because what is due must not be lost between a look and a turn.
local now, label, incarnation, lease_ms = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local m = load_state()
local member = 'remember:' .. label .. ':' .. incarnation
if not m or m.inc ~= incarnation then
  redis.call('ZREM', DUE, member)
  return { 'gone', 0 }
end
local function put_off(at)
  redis.call('ZADD', DUE, string.format('%d', at), member)
  m.mdue = 1
end
local stored = redis.call('HMGET', META, 'remembered', 'memory_lease', 'forget', 'closed', 'closing', 'user', 'copied')
local lease = tonumber(stored[2] or 0)
if is_unsure(m) then lease = now + STAGE_HELD_MS end
if lease > now then
  put_off(lease)
  save_state(m)
  return { 'busy', lease }
end
local remembered, closed = tonumber(stored[1] or 0), tonumber(string.match(stored[4] or '', '^%d+') or 0)
local is_open = m.head > 0 and closed < m.head
local closing = is_open and (stored[5] or (m.idle > 0 and m.spoken + m.idle <= now))
local upto = closing and m.head or math.max(m.cov, m.nx, remembered)
if not stored[3] and upto <= remembered and not closing then
  redis.call('HDEL', META, 'closing')
  if m.idle > 0 and is_open then put_off(m.spoken + m.idle) else
    redis.call('ZREM', DUE, member)
    m.mdue = 0
  end
  save_state(m)
  return { m.mdue == 1 and 'later' or 'none', m.spoken + m.idle }
end
redis.call('HSET', META, 'memory_lease', now + lease_ms)
put_off(now + lease_ms)
save_state(m)
return { 'ok', stored[6] or '', remembered, upto, m.head, closing and 1 or 0, stored[3] or '', m.chg,
  tonumber(redis.call('HGET', TOMB, 'epoch') or 0), m.hard, m.cal, m.spoken, m.fu, stored[7] or '' }
