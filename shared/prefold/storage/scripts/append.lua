-- append(now, new_incarnation, label, "hard ratio keep idle_ms lead_ms", retention_ms, grace_ms, count, turn…)
--   -> one string: the incarnation, then 64-bit big-endian integers: version, swaps, tokens, window_tokens, hard,
--      status (0 ok, 1 soft, 2 swapped, 3 degraded), swapped now (1) + passed the limit (2), and a turn: seq, tokens,
--      duplicate
--    | {'conflict' | 'rewound' | 'removed', turn id} | {'gone'} | {'too_large'} | {'changing'}
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

local STATUS = { ok = 0, soft = 1, swapped = 2, degraded = 3 }

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
  local cut = t.is_plain and 2 or t.is_cut and 1 or 0
  local record = t.tokens .. ' ' .. t.short_tokens .. ' ' .. m.log .. ' ' .. closer_tokens .. ' ' .. cut .. ' '
    .. t.tag .. ' 0 ' .. t.id .. '\n' .. t.envelope
  local open = m.open ~= '' and m.thinks .. m.answered .. ' ' .. m.open or nil
  redis.call('XADD', TURNS, seq .. '-0', unpack(entry_fields(record, t.content, t.short, closer, open, t.lead)))
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
if m and is_unsure(m) then return { 'changing' } end
local turns, at, known, fresh = {}, 8, {}, 0
for i = 1, count do
  local t
  t, at = take_turn(at)
  local stored = known[t.id] or redis.call('HGET', IDS, 't:' .. t.id)
  if stored then
    local seq, digest = string.match(stored, '^(%d+) (.+)$')
    if not seq then return { 'removed', t.id } end
    if not known[t.id] and is_rewound(tonumber(seq)) then return { 'rewound', t.id } end
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
local swapped, crossed = false, false
if fresh > 0 then
  local created = not m
  if created then
    m = new_state(ARGV[2], now, ARGV[4])
    redis.call('HSET', META, 'incarnation', m.inc, 'label', label)
  end
  local version, log_before = m.ver, m.log
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
  m.lead = tonumber(string.match(ARGV[4], '%d+$'))
  note_pace(m, m.log - log_before, now)
  m.updated, m.spoken = now, now
  crossed = m.tok > room(m)
  swapped = refit(m)
  if asked then m.luver = m.ver end
  if crossed then
    m.cross = m.cross + 1
    if swapped then m.ready = m.ready + 1 end
  end
  announce(m, label, first, now, grace)
  extend_life(m, label, now, retention, first == 1)
  fit_strings(m, 0, APPEND_FITTED_BYTES)
end
local status = status_of(m)
if fresh > 0 then
  m.fresh = 0
  save_state(m)
end

-- 3. Answer.
local answer = { m.inc, struct.pack('>i8i8i8i8i8i8i8', m.ver, m.swaps, served(m, m.tok + m.fix),
  served(m, m.tok - m.htok), m.hard, STATUS[status], (swapped and 1 or 0) + (crossed and 2 or 0)) }
for _, t in ipairs(turns) do
  answer[#answer + 1] = struct.pack('>i8i8i8', t.seq, served(m, t.tokens), t.new and 0 or 1)
end
return table.concat(answer)
