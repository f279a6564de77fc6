-- end_memory(now, label, incarnation, chg, what, ms, upto, closed, head) -> 'ended' | 'gone' | 'changed'
-- `renew`: the lease lasts ms longer. `retry`: it ends, and the session is due again in ms. `end`: the turns up to `upto`
-- are remembered, what was to be forgotten is, and with `closed` the session is closed, unless turns came after `head`; it
-- stays due when it was asked to close since. A late worker never moves the mark back.
-- `changed`: turns changed meanwhile, and the session is due at once. Twice is harmless.
-- Keys: meta, due, and context and next, which are made as small as they can be at the end. Atomic, because a
-- change of the log must not fall between the check and the mark.
local now, label, incarnation, what, ms = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[5], tonumber(ARGV[6])
local m = load_state()
if not m or m.inc ~= incarnation then return 'gone' end
local member = 'remember:' .. life(label, m)
local function due_at(at)
  redis.call('ZADD', DUE, string.format('%d', at), member)
  m.mdue = 1
end
local answer = 'ended'
if m.chg ~= tonumber(ARGV[4]) then
  redis.call('HDEL', META, 'memory_lease')
  due_at(now)
  answer = 'changed'
elseif what == 'renew' then
  redis.call('HSET', META, 'memory_lease', now + ms)
  due_at(now + ms)
elseif what == 'retry' then
  redis.call('HDEL', META, 'memory_lease')
  due_at(now + ms)
else
  local upto, closed, head = tonumber(ARGV[7]), ARGV[8] == '1', tonumber(ARGV[9])
  local stored = redis.call('HMGET', META, 'remembered', 'closing')
  upto = math.max(upto, tonumber(stored[1] or 0))
  redis.call('HDEL', META, 'memory_lease', 'forget')
  redis.call('HSET', META, 'remembered', upto)
  if closed and tonumber(stored[2] or 0) <= head then redis.call('HDEL', META, 'closing') end
  closed = closed and m.head == head
  if closed then
    redis.call('HSET', META, 'closed', string.format('%d %d', m.head, now))
    fit_strings(m, 0, FITTED_BYTES) -- it appends no more
  end
  local rest = redis.call('HMGET', META, 'closing', 'closed')
  if math.max(m.cov, m.nx) > upto or rest[1] then
    due_at(now)
  elseif m.idle > 0 and m.head > tonumber(string.match(rest[2] or '', '^%d+') or 0) then
    due_at(math.max(now, m.spoken + m.idle))
  else
    redis.call('ZREM', DUE, member)
    m.mdue = 0
  end
end
save_state(m)
return answer
