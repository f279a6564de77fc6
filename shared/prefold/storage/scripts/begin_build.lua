-- begin_build(now, label, incarnation, lease_ms)
--   -> {'ok', epoch, covers_to, cov, lease_ms, hard, fix, cal, carried turn, fu, urgent, wanted since, head} | {reason, when_ms}
-- Reasons: gone, not_due, busy, backoff, no_cut. Raises the epoch, so that every earlier ticket is void, and notes
-- epoch, covers_to and lease. Reads the log from its end until a cut serves.
-- Keys: meta, tomb, turns, due. Atomic, because two builders must not both get a lease.
local now, label, incarnation, lease_ms = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local m = load_state()
if not m or m.inc ~= incarnation then
  redis.call('ZREM', DUE, 'compact:' .. label .. ':' .. incarnation)
  return { 'gone', 0 }
end
local member = 'compact:' .. life(label, m)
if not build_wanted(m) then
  redis.call('ZREM', DUE, member)
  if m.want > 0 then
    m.want = 0
    save_state(m)
  end
  return { 'not_due', 0 }
end
if m.nocut == m.head then
  redis.call('ZREM', DUE, member)
  return { 'no_cut', 0 }
end
if m.blease > now then
  redis.call('ZADD', DUE, m.blease, member)
  return { 'busy', m.blease }
end
if m.retry > now and not needs_no_model(m, redis.call('HGET', META, 'build_error')) then
  redis.call('ZADD', DUE, m.retry, member)
  return { 'backoff', m.retry }
end

local tail_most = math.floor(room(m) * TAIL_SHARE)
local cover_least = math.max(MIN_COVERED, math.floor(room(m) * COVER_SHARE))

-- May a summary end right before `e`, the tail from there on holding `turns` turns and `tokens` tokens?
-- `carries`: the head may carry the newest user turn although the turns after it are few.
local function serves(e, turns, tokens, carries)
  if not e.cut then return false end
  local covers_newest = m.lu > 0 and e.seq > m.lu and m.lu ~= m.fu
  if covers_newest and not carries and m.log - m.lucum <= soft_room(m) then return false end
  return turns >= m.keep or tokens >= tail_most
end

-- Older cuts cover less still, so the search may end at the first that covers too little.
local function covers_enough(tokens) return m.full - m.htok - tokens >= cover_least end

-- The last turn before an entry, beyond what is covered already; 0 without one: a rewind leaves holes.
local function turn_before(id)
  local raw = redis.call('XREVRANGE', TURNS, '(' .. id, (math.max(m.cov, m.nx) + 1) .. '-0', 'COUNT', 1)[1]
  return raw and tonumber(string.match(raw[1], '^%d+')) or 0
end

-- What the newest cut that serves covers to, 0 without one.
local function find_cut(carries)
  local turns, tokens, upper = 0, 0, '+'
  local least = (math.max(m.cov, m.nx) + 2) .. '-0'
  while covers_enough(tokens) do
    local page = redis.call('XREVRANGE', TURNS, upper, least, 'COUNT', 16)
    if #page == 0 then return 0 end
    for _, raw in ipairs(page) do
      local e = entry_of(raw)
      turns, tokens = turns + 1, tokens + e.tokens + e.closer_tokens
      if not covers_enough(tokens) then return 0 end
      if serves(e, turns, tokens, carries) then return turn_before(raw[1]) end
      upper = '(' .. raw[1]
    end
  end
  return 0
end

local covers_to = find_cut(false)
-- Degraded already, so the newest user turn stands as the head would carry it: better a summary than a gap.
if covers_to == 0 and m.deg == 1 then covers_to = find_cut(true) end
if covers_to == 0 then
  -- Final until the next turn, whose append makes the session due again.
  m.nocut, m.want = m.head, 0
  redis.call('ZREM', DUE, member)
  redis.call('HSETNX', META, 'build_error', 'no_cut')
  save_state(m)
  return { 'no_cut', 0 }
end

local epoch = redis.call('HINCRBY', TOMB, 'epoch', 1)
redis.call('PEXPIREAT', TOMB, m.ends + TOMB_EXTRA_MS)
m.bcov, m.blease = covers_to, now + lease_ms
if m.want == 0 then m.want = now end
redis.call('HSET', META, 'build_epoch', epoch)
redis.call('ZADD', DUE, m.blease, member)
save_state(m)
local carried = (covers_to >= m.lu and m.lu ~= m.fu) and m.lu or 0
return { 'ok', epoch, covers_to, m.cov, lease_ms, m.hard, m.fix, m.cal, carried, m.fu,
  (m.deg == 1 or m.full > room(m)) and 1 or 0, m.want, m.head }
