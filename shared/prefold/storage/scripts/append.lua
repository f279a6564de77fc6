-- append(now, new_incarnation, label, "hard ratio keep", retention_ms, grace_ms, count, turn…)
--   -> one string: the incarnation, then 64-bit big-endian integers: version, swaps, tokens, window_tokens, hard,
--      status (0 ok, 1 soft, 2 swapped, 3 degraded), swapped now, and a turn: seq, tokens, duplicate
--    | {'conflict', turn id} | {'gone'} | {'too_large'}
-- now, ms, is the caller's clock, good enough for the fast path; here the server's counts, unless now is "=ms" (tests).
-- A turn: id, digest, tag ("kind role verbatim"), envelope, tokens,
--   short_tokens, content, short, usage; for other kinds than p then: thinks, system_text, system_tokens, ids,
--   short_pieces, and for c: the ids, ids + 1 pieces, short_pieces short pieces; for r: (id, attributes, is_text,
--   content, short) an id.
-- Keys: all of the session (lib_state) and its partition's events and due; they end with the session's retention.
-- Atomic, because number, log, context, swap and event of a turn must be seen together or not at all.
-- append_plain.lua has served the common case before this.
local now, label = clock(string.match(ARGV[1], '^=(%d+)') or ''), ARGV[3]
local retention, grace, count = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

-- Reads ARGV from `at`; returns the turn and where the next one starts.
local function take_turn(at)
  local t = {
    id = ARGV[at], digest = ARGV[at + 1], tag = ARGV[at + 2], envelope = ARGV[at + 3],
    tokens = tonumber(ARGV[at + 4]), short_tokens = tonumber(ARGV[at + 5]), content = ARGV[at + 6],
    short = ARGV[at + 7], usage = tonumber(ARGV[at + 8]),
  }
  t.kind, t.role = string.match(t.tag, '^(%a) (%a)')
  if t.kind == 'p' then return t, at + 9 end
  t.thinks, t.system_text, t.system_tokens = ARGV[at + 9], ARGV[at + 10], tonumber(ARGV[at + 11])
  t.ids, t.short_pieces, t.at = tonumber(ARGV[at + 12]), tonumber(ARGV[at + 13]), at + 14
  if t.kind == 'c' then return t, at + 14 + t.ids + t.ids + 1 + t.short_pieces end
  return t, at + 14 + 5 * t.ids
end

local STATUS = { ok = 0, soft = 1, swapped = 2, degraded = 3 }

-- Ids of open calls, in call order.
local function open_ids(m)
  local out = {}
  for id in string.gmatch(m.open, '[^ ]+') do out[#out + 1] = id end
  return out
end

-- Marker results for all open calls, as blocks, with their tokens; nothing is open afterwards.
local function close_round(m)
  local blocks, tokens = {}, FRAGMENT_TOKENS
  for _, id in ipairs(open_ids(m)) do
    blocks[#blocks + 1] = CLOSER_HEAD .. id .. CLOSER_TAIL
    tokens = tokens + CLOSER_TOKENS + #id
  end
  m.open, m.thinks, m.answered = '', 0, 0
  if #blocks == 0 then return nil, 0 end
  return table.concat(blocks, ','), tokens
end

-- A call id may come again in one session; providers want it once a request, so a repeat gets a suffix.
local function place_calls(m, t, seq)
  local ids, prefix = {}, t.at - 1
  for i = 1, t.ids do
    local id = ARGV[prefix + i]
    local stem, number = string.sub(id, 1, 48) .. '_' .. seq, 0
    while redis.call('HSETNX', IDS, 'c:' .. id, seq) == 0 do
      id, number = number == 0 and stem or stem .. '_' .. number, number + 1
    end
    if id ~= ARGV[prefix + i] then
      t.tokens, t.short_tokens = t.tokens + RENAME_TOKENS, t.short_tokens + RENAME_TOKENS
      redis.call('HSET', IDS, 'r:' .. ARGV[prefix + i], id)
    end
    ids[i] = id
  end
  local function join(first)
    local out = { ARGV[first] }
    for i = 1, t.ids do out[#out + 1] = ids[i]; out[#out + 1] = ARGV[first + i] end
    return table.concat(out)
  end
  t.content = join(t.at + t.ids)
  t.short = t.short_pieces > 0 and join(t.at + t.ids + t.ids + 1) or ''
  m.open = m.open == '' and table.concat(ids, ' ') or m.open .. ' ' .. table.concat(ids, ' ')
  m.thinks = t.thinks == '1' and 1 or m.thinks
end

-- Sorts results into those that answer an open call, in call order, and late ones, which become text.
-- Returns the calls that stay open.
local function place_results(m, t)
  local by_id, full, short, left = {}, {}, {}, {}
  local function add(text, brief) full[#full + 1] = text; short[#short + 1] = brief end
  for i = 0, t.ids - 1 do
    local at = t.at + 5 * i
    local id = ARGV[at]
    by_id[id] = at
    local renamed = redis.call('HGET', IDS, 'r:' .. id)
    if renamed then by_id[renamed] = at end
  end
  local function result(id, attributes, text) return RESULT_HEAD .. id .. '"' .. attributes .. ',"content":' .. text .. '}' end
  local used = {}
  for _, id in ipairs(open_ids(m)) do
    local at = by_id[id]
    if at and not used[at] then
      used[at] = true
      local text = ARGV[at + 2] == '1' and ARGV[at + 3] or '[' .. ARGV[at + 3] .. ']'
      local brief = ARGV[at + 4] ~= '' and ARGV[at + 4] or text
      add(result(id, ARGV[at + 1], text), result(id, ARGV[at + 1], brief))
    else
      left[#left + 1] = id
    end
  end
  local matched, late_full, late_short = #full, {}, {}
  for i = 0, t.ids - 1 do
    local at = t.at + 5 * i
    if not used[at] then
      local head = LATE_HEAD .. ARGV[at] .. LATE_TAIL .. ','
      local text = ARGV[at + 2] == '1' and TEXT_HEAD .. ARGV[at + 3] .. '}' or ARGV[at + 3]
      late_full[#late_full + 1] = head .. text
      late_short[#late_short + 1] = head .. (ARGV[at + 4] ~= '' and TEXT_HEAD .. ARGV[at + 4] .. '}' or text)
    end
  end
  t.matched, t.results_full, t.results_short = matched, full, short
  t.late_full, t.late_short = late_full, late_short
  return left
end

-- Content of a turn with results; closes what stays open when plain blocks come with them.
local function place_result_turn(m, t)
  local left = place_results(m, t)
  local plain = t.content
  local has_text = plain ~= '' or #t.late_full > 0
  m.open = table.concat(left, ' ')
  m.answered = t.matched > 0 and 1 or m.answered
  local closer, closer_tokens = nil, 0
  if has_text and m.open ~= '' then
    closer, closer_tokens = close_round(m)
    if t.matched > 0 then
      t.results_full[#t.results_full + 1] = closer
      t.results_short[#t.results_short + 1] = closer
      t.tokens, t.short_tokens = t.tokens + closer_tokens, t.short_tokens + closer_tokens
      closer, closer_tokens = nil, 0
    end
  end
  if m.open == '' then m.thinks, m.answered = 0, 0 end
  local function join(results, late, rest)
    local out = {}
    for _, x in ipairs(results) do out[#out + 1] = x end
    for _, x in ipairs(late) do out[#out + 1] = x end
    if rest ~= '' then out[#out + 1] = rest end
    return table.concat(out, ',')
  end
  t.content = join(t.results_full, t.late_full, plain)
  t.short = t.short_tokens < t.tokens and join(t.results_short, t.late_short, t.short ~= '' and t.short or plain) or ''
  t.is_cut = t.matched == 0
  t.is_plain = plain ~= '' and t.matched == 0
  return closer, closer_tokens
end

-- A system turn leads while nothing else was said and it leaves room; then it joins the system prompt.
local function leads(m, t)
  if m.leads == 0 then return false end
  local fix = m.fix + t.system_tokens
  return fix * m.cal <= m.hard * 1000 * SYSTEM_SHARE and math.floor(m.hard * 1000 / m.cal) - fix >= 2 * MIN_ROOM
end

local function join_system(m, t)
  local stored = redis.call('HMGET', META, 'lead_system', 'system')
  t.content, t.short, t.tokens, t.short_tokens = '', '', 0, 0
  if not stored[1] and stored[2] == t.system_text then return end
  m.ver = m.ver + 1
  redis.call('HSET', META, 'lead_system', stored[1] and stored[1] .. '\\n\\n' .. t.system_text or t.system_text)
  m.leadtok = m.leadtok + t.system_tokens
  m.fix = m.systok + m.leadtok + m.tooltok
end

-- Sets content, closer and cut of a turn, and the session's open calls.
local function place(m, t, seq)
  local closer, closer_tokens = nil, 0
  t.is_cut, t.is_plain = true, false
  if t.kind == 'y' and leads(m, t) then
    join_system(m, t)
    return nil, 0
  end
  if m.lost == 1 then
    -- The ladder took the open round out of the view: its closer stands in the log and the standby only.
    m.lost, t.hides_closer = 0, true
    closer, closer_tokens = close_round(m)
    if t.kind == 'r' then place_result_turn(m, t) elseif t.kind == 'c' then place_calls(m, t, seq) end
    t.is_plain = t.is_plain or t.kind == 'p' and t.role == 'u'
    return closer, closer_tokens
  end
  if t.kind == 'r' then
    closer, closer_tokens = place_result_turn(m, t)
  elseif t.kind == 'c' and m.open ~= '' and m.answered == 0 then
    t.is_cut = false
    place_calls(m, t, seq)
  else
    if m.open ~= '' then closer, closer_tokens = close_round(m) end
    if t.kind == 'c' then place_calls(m, t, seq) end
    t.is_plain = t.kind == 'p' and t.role == 'u'
  end
  if m.leads == 1 then
    m.leads = 0
    if t.role == 'a' then m.opens = 1 end
  end
  return closer, closer_tokens
end

-- A report teaches only while the context is of the version that the newest user turn met: one that was made before a
-- swap says nothing about the context after it. It moves the factor by half at most, in case it speaks of another read.
local function learn_usage(m, t)
  local raw = m.tok + m.fix
  if t.usage == 0 or raw < USAGE_FLOOR or m.luver ~= m.ver then return end
  local most = math.min(MOST_CALIBRATION, math.floor(m.cal * 1.5))
  m.seen = math.max(1000, math.min(most, math.ceil(t.usage * 1000 / raw)))
  if m.seen > m.cal then m.cal = m.seen; cap_calibration(m) end
end

local function store_turn(m, t)
  learn_usage(m, t)
  local seq = m.head + 1
  local opened = m.opens
  local closer, closer_tokens = place(m, t, seq)
  local role = t.role == 'a' and 'assistant' or 'user'
  m.head, m.log = seq, m.log + t.tokens + closer_tokens
  local record = t.tokens .. ' ' .. t.short_tokens .. ' ' .. m.log .. ' ' .. closer_tokens .. ' '
    .. (t.is_cut and 1 or 0) .. ' ' .. t.tag .. ' 0 ' .. t.id
    .. '\n' .. t.envelope
  local fields = { 'r', record, 'c', t.content }
  if t.short ~= '' then fields[5], fields[6] = 's', t.short end
  if closer then fields[#fields + 1] = 'k'; fields[#fields + 1] = closer end
  redis.call('XADD', TURNS, seq .. '-0', unpack(fields))
  redis.call('HSET', IDS, 't:' .. t.id, seq .. ' ' .. t.digest)
  if t.is_plain then
    m.lu, m.lucum = seq, m.log
    if m.fu == 0 then m.fu = seq end
  end
  local own = t.content ~= '' and line(role, seq, t.tokens, t.content) or ''
  local whole, tokens = own, t.tokens + closer_tokens
  if closer then whole = part_line('user', seq, 'closer', closer_tokens, closer) .. whole end
  if m.opens ~= opened then whole, tokens = opener_line() .. whole, tokens + OPENER_TOKENS end
  m.tok = m.tok + (t.hides_closer and t.tokens or tokens)
  m.full = m.full + tokens
  if m.nx > 0 then m.ntok = m.ntok + tokens end
  return seq, t.hides_closer and own or whole, whole
end

-- 1. Look before the first write.
local m = load_state()
if not m and redis.call('HGET', TOMB, 'erased') == '1' then return { 'gone' } end
local turns, at, known, fresh = {}, 8, {}, 0
for i = 1, count do
  local t
  t, at = take_turn(at)
  local stored = known[t.id] or redis.call('HGET', IDS, 't:' .. t.id)
  if stored then
    local seq, digest = string.match(stored, '^(%d+) (.+)$')
    if digest ~= t.digest then return { 'conflict', t.id } end
    t.seq = tonumber(seq)
  else
    fresh = fresh + 1
    known[t.id] = ((m and m.head or 0) + fresh) .. ' ' .. t.digest
  end
  turns[i] = t
end

if fresh > 0 then
  local coming = 0
  for i = 8, #ARGV do coming = coming + #ARGV[i] + 100 end
  if (m and math.max(m.bytes, m.nbytes) or 0) + coming > MOST_BYTES then return { 'too_large' } end
end

-- 2. Store what is new.
local swapped = false
if fresh > 0 then
  local created = not m
  if created then
    local hard, ratio, keep = string.match(ARGV[4], '^(%d+) (%d+) (%d+)$')
    m = new_state(ARGV[2], now, tonumber(hard), tonumber(ratio), tonumber(keep))
    redis.call('HSET', META, 'incarnation', m.inc, 'label', label)
  end
  local version = m.ver
  local first, out, out_next = m.head + 1, { created and header(m, 0, 0) or '' }, {}
  for _, t in ipairs(turns) do
    if not t.seq then
      t.seq, out[#out + 1], out_next[#out_next + 1] = store_turn(m, t)
      t.new = true
    end
  end
  m.bytes = redis.call('APPEND', CONTEXT, table.concat(out))
  if m.nx > 0 then m.nbytes = redis.call('APPEND', NEXT, table.concat(out_next)) end
  if m.ver > version then redis.call('SETRANGE', CONTEXT, 11, string.format('%-10d', m.ver)) end
  local asked = m.lu >= first
  m.updated = now
  local over = m.tok > room(m)
  swapped = refit(m)
  if asked then m.luver = m.ver end
  if over then
    m.cross = m.cross + 1
    if swapped then m.ready = m.ready + 1 end
  end
  announce(m, label, first, now, grace)
  extend_life(m, label, now, retention, first == 1)
end
local status = status_of(m)
if fresh > 0 then
  m.fresh = 0
  save_state(m)
end

-- 3. Answer.
local answer = { m.inc, struct.pack('>i8i8i8i8i8i8i8', m.ver, m.swaps, served(m, m.tok + m.fix),
  served(m, m.tok - m.htok), m.hard, STATUS[status], swapped and 1 or 0) }
for _, t in ipairs(turns) do
  answer[#answer + 1] = struct.pack('>i8i8i8', t.seq, served(m, t.tokens), t.new and 0 or 1)
end
return table.concat(answer)
