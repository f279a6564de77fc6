-- Turns as the caller prepared them, and how tool rounds place them: what a turn's blocks become, what it closes.

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

-- Content and short form of a turn with calls, `ids` being what its calls are called in the context.
local function join_calls(t, ids)
  local function join(first)
    local out = { ARGV[first] }
    for i = 1, t.ids do out[#out + 1] = ids[i]; out[#out + 1] = ARGV[first + i] end
    return table.concat(out)
  end
  for i = 1, t.ids do
    if ids[i] ~= ARGV[t.at - 1 + i] then
      t.tokens, t.short_tokens = t.tokens + RENAME_TOKENS, t.short_tokens + RENAME_TOKENS
    end
  end
  t.content = join(t.at + t.ids)
  t.short = t.short_pieces > 0 and join(t.at + t.ids + t.ids + 1) or ''
end

-- A call id may come again in one session; providers want it once a request, so a repeat gets a suffix.
-- `r:` and the name that it got tell how it was published.
local function published_name(placed) return redis.call('HGET', IDS, 'r:' .. placed) or placed end

local function place_calls(m, t, seq)
  local ids, prefix = {}, t.at - 1
  for i = 1, t.ids do
    local id = ARGV[prefix + i]
    local stem, number = string.sub(id, 1, 48) .. '_' .. seq, 0
    while redis.call('HSETNX', IDS, 'c:' .. id, seq) == 0 do
      id, number = number == 0 and stem or stem .. '_' .. number, number + 1
    end
    if id ~= ARGV[prefix + i] then redis.call('HSET', IDS, 'r:' .. id, ARGV[prefix + i]) end
    ids[i] = id
  end
  join_calls(t, ids)
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
  end
  local function result(id, attributes, text) return RESULT_HEAD .. id .. '"' .. attributes .. ',"content":' .. text .. '}' end
  local used = {}
  for _, id in ipairs(open_ids(m)) do
    local at = by_id[id] or by_id[published_name(id)]
    if at and not used[at] then
      used[at] = true
      local text = ARGV[at + 2] == '1' and ARGV[at + 3] or '[' .. ARGV[at + 3] .. ']'
      local brief = ARGV[at + 4] ~= '' and ARGV[at + 4] or text
      add(result(id, ARGV[at + 1], text), result(id, ARGV[at + 1], brief))
    else
      left[#left + 1] = id
    end
  end
  local matched, late_full, late_short, late_ids = #full, {}, {}, {}
  for i = 0, t.ids - 1 do
    local at = t.at + 5 * i
    if not used[at] then
      local head = LATE_HEAD .. ARGV[at] .. LATE_TAIL .. ','
      late_ids[#late_ids + 1] = ARGV[at]
      local text = ARGV[at + 2] == '1' and TEXT_HEAD .. ARGV[at + 3] .. '}' or ARGV[at + 3]
      late_full[#late_full + 1] = head .. text
      late_short[#late_short + 1] = head .. (ARGV[at + 4] ~= '' and TEXT_HEAD .. ARGV[at + 4] .. '}' or text)
    end
  end
  t.matched, t.results_full, t.results_short = matched, full, short
  t.late_full, t.late_short, t.late_ids = late_full, late_short, late_ids
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
  m.ver, t.lead = m.ver + 1, t.system_tokens .. ' ' .. t.system_text
  redis.call('HSET', META, 'lead_system', stored[1] and stored[1] .. '\\n\\n' .. t.system_text or t.system_text)
  m.leadtok = m.leadtok + t.system_tokens
  m.fix = fixed(m)
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
