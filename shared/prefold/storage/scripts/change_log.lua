-- change_log(now, label, incarnation, op, at, token, most_entries, most_bytes, turn…)
--   -> {'ok' | 'same', incarnation, turns, first, last, numbers (64-bit: head, version, tokens, window, hard, swaps, status)}
--    | {'more', incarnation} | {'changing', ms} | {'none' | 'gone' | 'unknown' | 'rewound' | 'removed' | 'shape'}
--    | {'ahead', head} | {'no_room', raw tokens}
-- op `rewind`: takes back every turn after the number `at`. `edit`, `remove`: turn id `at` says from now on what `turn`
-- (as append takes it) says; after `remove` its id is of no use any more. Copies the log into the stage, at most so many
-- entries or bytes a call (a rewind of few turns needs no copy): `more` asks for the same call again, with the incarnation that it gives ('' at first). The
-- call that reaches the end publishes. `token` names this attempt; another's live one answers `changing`.
-- Twice is harmless: `same`. Keys: all of the session, staged copies too. Atomic, because log, context and what was
-- derived of the changed turns must change at once.
local now, label, op, target, token = clock(ARGV[1]), ARGV[2], ARGV[4], ARGV[5], ARGV[6]
local most_entries, most_bytes = tonumber(ARGV[7]), tonumber(ARGV[8])
local STATUS = { ok = 0, soft = 1, swapped = 2, degraded = 3 }

local m = load_state()
if not m then return { redis.call('HGET', TOMB, 'erased') == '1' and 'gone' or 'none' } end
if ARGV[3] ~= '' and ARGV[3] ~= m.inc then return { 'none' } end
if is_unsure(m) then return { 'changing', 50 } end

local function answer(word, turns, first, last)
  return { word, m.inc, turns, first, last, struct.pack('>i8i8i8i8i8i8i8', m.head, m.ver, served(m, m.tok + m.fix),
    served(m, m.tok - m.htok), m.hard, m.swaps, STATUS[status_of(m)]) }
end

local function plain_pattern(text) return (string.gsub(text, '%p', '%%%0')) end

local function ids_of(open)
  local out = {}
  for id in string.gmatch(open and string.sub(open, 4) or '', '[^ ]+') do out[#out + 1] = id end
  return out
end

-- Calls again, under the names that they have: the last ones that are open after the turn.
local function calls_again(t, old, cut, before)
  local ids, open = {}, ids_of(old.open)
  local earlier = cut == '0' and #ids_of(before and before.open) or 0
  if #open - earlier ~= t.ids then return false end
  for i = 1, t.ids do
    ids[i] = open[earlier + i]
    if published_name(ids[i]) ~= ARGV[t.at - 1 + i] then return false end
  end
  join_calls(t, ids)
  return true
end

local function has(text, piece) return string.find(text, piece, 1, true) ~= nil end

-- Results again: for the same calls, in time or late, and leaving and closing the same ones. A call that the turn itself
-- closed has a marker in it.
local function results_again(t, old, cut, before)
  local open = not old.closer and before and before.open or nil
  local round = { open = open and string.sub(open, 4) or '', thinks = 0, answered = 0 }
  local still_open = old.open and string.sub(old.open, 4) or ''
  -- A call id that came several times in the round: the name that this turn answered, not one that it left open.
  local answered = {}
  for _, id in ipairs(ids_of(open)) do
    answered[id] = not has(' ' .. still_open .. ' ', ' ' .. id .. ' ') and not has(old.content, CLOSER_HEAD .. id .. CLOSER_TAIL)
  end
  local closer = place_result_turn(round, t)
  if closer or round.open ~= still_open or t.is_cut ~= (cut ~= '0') or t.is_plain ~= (cut == '2') then return false end
  for _, id in ipairs(ids_of(open)) do
    local marker = CLOSER_HEAD .. id .. CLOSER_TAIL
    if has(old.content, marker) ~= has(t.content, marker) then return false end
  end
  local late = {}
  for id in string.gmatch(old.content, plain_pattern(LATE_HEAD) .. '([%w_-]+)') do late[#late + 1] = id end
  return #late == #t.late_ids and table.concat(late, ' ') == table.concat(t.late_ids, ' ')
end

-- The entry's fields as the turn changes them, or nil and why not.
local function changed_fields(raw, before, t)
  local old = entry_of(raw)
  local record, envelope = string.match(old.record, '^([^\n]*)\n(.*)$')
  local cum, closer, cut, kind, role, rev, id =
    string.match(record, '^%d+ %d+ (%d+) (%d+) (%d) (%a) (%a) %a (%d+) (.*)$')
  if kind ~= t.kind or role ~= t.role then return nil, 'shape' end
  local lead = nil
  if kind == 'y' and old.content == '' then
    t.content, t.short, t.tokens, t.short_tokens = '', '', 0, 0
    lead = t.system_text ~= '' and t.system_tokens .. ' ' .. t.system_text or nil
    local more = t.system_tokens - tonumber(old.lead and string.match(old.lead, '^%d+') or 0)
    if more > 0 and m.hard - m.fix - more < 2 * MIN_ROOM then return nil, 'no_room' end
  elseif kind == 'c' and not calls_again(t, old, cut, before) then
    return nil, 'shape'
  elseif kind == 'r' and not results_again(t, old, cut, before) then
    return nil, 'shape'
  end
  if op == 'edit' and t.content == old.content and t.envelope == envelope and lead == old.lead then return nil, 'same' end
  if op == 'remove' and cut == '2' then cut = '1' end
  local line = t.tokens .. ' ' .. t.short_tokens .. ' ' .. cum .. ' ' .. closer .. ' ' .. cut .. ' ' .. t.tag .. ' '
    .. (rev + 1) .. ' ' .. id .. '\n' .. t.envelope
  local fields = entry_fields(line, t.content, t.short, old.closer, old.open, lead)
  if op == 'remove' then fields[#fields + 1] = 'd'; fields[#fields + 1] = '1' end
  return fields
end

-- What the change is about: `stop` ends the copy, `edited` is the entry that differs. Or an answer at once.
local edited, fields, first, stop = 0, nil, 0, '+'
if op == 'rewind' then
  local to_seq = tonumber(target)
  if to_seq > m.head then return { 'ahead', m.head } end
  local taken = redis.call('XRANGE', TURNS, (to_seq + 1) .. '-0', '+', 'COUNT', 1)[1]
  if not taken then return answer('same', 0, 1, 0) end
  first, stop = tonumber(string.match(taken[1], '^%d+')), to_seq .. '-0'
else
  local stored = redis.call('HGET', IDS, 't:' .. target)
  if not stored then return { 'unknown' } end
  edited = tonumber(string.match(stored, '%d+'))
  if is_rewound(edited) then return { 'rewound' } end
  if string.sub(stored, 1, 1) == 'd' then
    if op == 'remove' then return answer('same', 1, 1, 0) end
    return { 'removed' }
  end
  local raw = redis.call('XRANGE', TURNS, edited .. '-0', edited .. '-0')[1]
  local before = redis.call('XREVRANGE', TURNS, '(' .. edited .. '-0', '-', 'COUNT', 1)[1]
  local why
  fields, why = changed_fields(raw, before and entry_of(before), (take_turn(9)))
  if why == 'same' then return answer('same', 1, 1, 0) end
  if why then return { why, math.max(0, m.hard - 2 * MIN_ROOM - m.fix) } end
  first = edited
end

-- Copies until the end (true) or the bound.
local function copy(stage)
  local entries, bytes = 0, 0
  while entries < most_entries and bytes < most_bytes do
    local page = redis.call('XRANGE', TURNS, '(' .. stage.last .. '-0', stop, 'COUNT', 16)
    if #page == 0 then return true end
    for _, raw in ipairs(page) do
      local copied = raw[1] == edited .. '-0' and fields or raw[2]
      for _, value in ipairs(copied) do bytes = bytes + #value end
      stage_entry(stage, raw[1], copied)
      entries = entries + 1
      if bytes >= most_bytes then break end
    end
  end
  return false
end

local head, turns = m.head, redis.call('XLEN', TURNS)
if op == 'rewind' and head - tonumber(target) <= most_entries then
  if load_stage() then drop_stage() end
  local sums = sums_to(m, tonumber(target))
  cut_tail(tonumber(target), head)
  count_anew(m, sums)
else
  local stage, wait_ms = hold_stage(token, m.chg, now)
  if not stage then return { 'changing', wait_ms } end
  if not copy(stage) then
    save_stage(stage, now)
    return { 'more', m.inc }
  end
  publish_stage(m, stage)
  count_anew(m, stage)
end
turns = op == 'rewind' and turns - redis.call('XLEN', TURNS) or 1
local last = op == 'rewind' and head or edited
if op == 'rewind' then
  local ranges, from = {}, first
  for low, high in string.gmatch(redis.call('HGET', META, 'rewound') or '', '(%d+)-(%d+)') do
    if tonumber(high) + 1 >= from and tonumber(low) < from then
      from = tonumber(low)
    elseif tonumber(low) < from then
      ranges[#ranges + 1] = low .. '-' .. high
    end
  end
  ranges[#ranges + 1] = from .. '-' .. head
  redis.call('HSET', META, 'rewound', table.concat(ranges, ' '))
elseif op == 'remove' then
  redis.call('HSET', IDS, 't:' .. target, 'd' .. edited)
end
note_pace(m, 0, now)
derive_anew(m, first - 1)
owe_vectors(m, label, now, first, last, op == 'rewind')
owe_memory(m, label, now, first, last)
m.updated, m.spoken = now, now
keep_life(m)
save_state(m)
return answer('ok', turns, first, last)
