-- restore_due(now, label, grace_ms, version, released…) -> number of entries added
-- Puts back what the session's own state says is due and `due` does not have: the embedding, a summary, the end by age,
-- and the vectors of lives that are over. An entry that is there stays as it is. `released` (kind:incarnation): work
-- that was set aside and gets another try; its record goes, and it is due now. Other work that is set aside stays out
-- when its record names `version`: another Prefold may try its luck.
-- Keys: meta, tomb, due, dead. Writes nothing where nothing is missing. Atomic, because
-- what is compared must not change in between.
local now, label, grace = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local DEAD = KEYS[12]
local m = load_state()
local added = 0

local function put(kind, incarnation, at)
  local member = kind .. ':' .. label .. ':' .. incarnation
  local record = redis.call('HGET', DEAD, member)
  if record and string.find(record, '"version":"' .. ARGV[4] .. '"', 1, true) then return end
  added = added + redis.call('ZADD', DUE, 'NX', string.format('%d', at), member)
end

local released = {}
for i = 5, #ARGV do
  local kind, incarnation = string.match(ARGV[i], '^(%l+):(.+)$')
  local member = kind .. ':' .. label .. ':' .. incarnation
  redis.call('HDEL', DEAD, member)
  redis.call('ZADD', DUE, 'XX', string.format('%d', now), member)
  released[kind] = m and m.inc == incarnation
end

-- When the embedders have something to do, as mark_embedded says it; nil: never.
local function embeds_at()
  local stored = redis.call('HMGET', META, 'embedded', 'redo', 'purge')
  local marked = tonumber(string.match(stored[1] or '', '^(%d+) ')) or 0
  if marked < m.head or stored[2] then return now + (released.embed and 0 or grace) end
  local at = nil
  for asked in string.gmatch(stored[3] or '', '@(%d+)') do
    at = math.min(at or math.huge, tonumber(asked) + ERASE_GRACE_MS)
  end
  return at
end

if m then
  local at = embeds_at()
  if at then put('embed', m.inc, at) end
  local edue = at and at <= now + grace and 1 or m.edue
  local retry = released.compact and 0 or m.retry
  if edue ~= m.edue or retry ~= m.retry then
    m.edue, m.retry = edue, retry
    save_state(m)
  end
  if build_wanted(m) and m.nocut ~= m.head then put('compact', m.inc, math.max(now, m.blease, m.retry)) end
  local memory = redis.call('HMGET', META, 'forget', 'remembered', 'closing', 'closed')
  if memory[1] or memory[3] or math.max(m.cov, m.nx) > tonumber(memory[2] or 0) then
    put('remember', m.inc, now + (released.remember and 0 or grace))
  elseif m.idle > 0 and m.head > 0 and tonumber(string.match(memory[4] or '', '^%d+') or 0) < m.head then
    put('remember', m.inc, math.max(now, m.spoken + m.idle))
  end
  -- As extend_life has it, for a retention that is not known here.
  if is_unsure(m) then put('expire', m.inc, now + STAGE_ENDS_MS)
  elseif m.ends > 0 then put('expire', m.inc, m.ends - math.min(EXPIRE_AHEAD_MS, math.floor(math.max(0, m.ends - now) / 10))) end
end
local ended = redis.call('HGETALL', TOMB)
for i = 1, #ended, 2 do
  local incarnation = string.match(ended[i], '^end:(.+)$')
  if incarnation then put('expire', incarnation, ended[i + 1] + ERASE_GRACE_MS) end
end
return added
