-- hold_build(now, label, incarnation, epoch, action, ms, reason) -> 1 | 0
-- `renew`: the lease lasts ms longer from now. `abandon`: the lease ends, a new build may start in ms; reason is kept.
-- `rest`: the same, and no build before the log has grown by a step: builds of this session come to nothing.
-- 0: this ticket is void, because a later build, an erase or a change of the covered turns raised the epoch.
-- Keys: meta, tomb, due. Atomic, because only the holder of the newest ticket may move the lease.
local now, label, incarnation = clock(ARGV[1]), ARGV[2], ARGV[3]
local m = load_state()
if not m or m.inc ~= incarnation or redis.call('HGET', TOMB, 'epoch') ~= ARGV[4] or m.bcov == 0 then return 0 end
local at = now + tonumber(ARGV[6])
if ARGV[5] == 'renew' then
  m.blease = at
else
  if needs_no_model(m, ARGV[7]) then at = now end
  m.bcov, m.blease, m.retry = 0, 0, at
  redis.call('HSET', META, 'build_error', ARGV[7])
end
if ARGV[5] == 'rest' then
  m.rest, m.want = m.log + math.max(1, math.floor(room(m) * REFRESH_STEP)), 0
  redis.call('ZREM', DUE, 'compact:' .. life(label, m))
  save_state(m)
  return 1
end
redis.call('ZADD', DUE, at, 'compact:' .. life(label, m))
save_state(m)
return 1
