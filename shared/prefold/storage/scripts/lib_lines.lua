-- Lines of the context string: finished bytes are joined, content is never decoded.
local function header(m, covers_to, head_tokens)
  return string.format('{"version":%-10d,"format":1,"covers_to":%d,"head_tokens":%d}\n', m.ver, covers_to, head_tokens)
end

local function line(role, seq, tokens, content)
  return '{"role":"' .. role .. '","seq":' .. seq .. ',"tokens":' .. tokens .. ',"content":[' .. content .. ']}\n'
end

local function part_line(role, seq, part, tokens, content)
  return '{"role":"' .. role .. '","seq":' .. seq .. ',"part":"' .. part .. '","tokens":' .. tokens
    .. ',"content":[' .. content .. ']}\n'
end

local function opener_line() return part_line('user', 0, 'opener', OPENER_TOKENS, OPENER) end

local function gap_line(first, last)
  return part_line('user', last, 'gap', GAP_TOKENS, GAP_HEAD .. first .. '-' .. last .. GAP_TAIL)
end

-- One entry of the log as a table. `lines` of a turn: its closer (absent right after a cut), then itself.
local function entry_of(raw)
  local f = {}
  for i = 1, #raw[2], 2 do f[raw[2][i]] = raw[2][i + 1] end
  local tokens, short, cum, closer, cut, kind, role = string.match(f.r, '^(%d+) (%d+) (%d+) (%d+) (%d) (%a) (%a)')
  return {
    seq = tonumber(string.match(raw[1], '^%d+')),
    tokens = tonumber(tokens), short_tokens = tonumber(short), cum = tonumber(cum), closer_tokens = tonumber(closer),
    cut = cut ~= '0', asks = cut == '2', kind = kind, role = role == 'u' and 'user' or 'assistant',
    content = f.c, short = f.s, closer = f.k, record = f.r, open = f.o, lead = f.y, removed = f.d,
  }
end

-- Fields of an entry: record, blocks, short form, closer, open calls after it ("thinks answered ids"), and what a
-- system turn that leads gives to the system prompt ("tokens text"). `d` of a removed turn stands last.
local function entry_fields(record, content, short, closer, open, lead)
  local out = { 'r', record, 'c', content }
  local function add(name, value) out[#out + 1] = name; out[#out + 1] = value end
  if short and short ~= '' then add('s', short) end
  if closer then add('k', closer) end
  if open then add('o', open) end
  if lead then add('y', lead) end
  return out
end

-- Whether the turn of that number was taken back. meta's `rewound` names ranges: "5-9 12-20".
local function is_rewound(seq)
  for first, last in string.gmatch(redis.call('HGET', META, 'rewound') or '', '(%d+)-(%d+)') do
    if seq >= tonumber(first) and seq <= tonumber(last) then return true end
  end
  return false
end

local function entries_after(seq)
  local out = {}
  for i, raw in ipairs(redis.call('XRANGE', TURNS, (seq + 1) .. '-0', '+')) do out[i] = entry_of(raw) end
  return out
end

local function closer_line(e) return part_line('user', e.seq, 'closer', e.closer_tokens, e.closer) end

-- Lines and raw tokens of an entry; `first`: it opens the window; `use_short`: by its short form.
local function entry_lines(e, first, use_short)
  if e.content == '' then return '', 0 end
  local text, tokens
  if use_short and e.short then
    text, tokens = part_line(e.role, e.seq, 'short', e.short_tokens, e.short), e.short_tokens
  else
    text, tokens = line(e.role, e.seq, e.tokens, e.content), e.tokens
  end
  if e.closer and not first then return closer_line(e) .. text, tokens + e.closer_tokens end
  return text, tokens
end

-- A stored summary: "covers_to tokens carries record", a line feed, the head's lines. `carries`: 1 when the head holds
-- the newest user turn that it covers.
local function summary_body(covers_to, tokens, carries, record, lines)
  return covers_to .. ' ' .. tokens .. ' ' .. (carries and 1 or 0) .. ' ' .. record .. '\n' .. lines
end

local function summary_of(body)
  local covers_to, tokens, carries, lines = string.match(body, '^(%d+) (%d+) (%d) [^\n]*\n(.*)$')
  return { covers_to = tonumber(covers_to), tokens = tonumber(tokens), carries = carries == '1', lines = lines }
end

-- Head lines of the active summary.
local function active_head(m)
  if m.cov == 0 then return '' end
  local stored = redis.call('HGET', SUMMARIES, m.sver)
  return stored and summary_of(stored).lines or ''
end

local function split_head(text)
  local parts = {}
  for one in string.gmatch(text, '[^\n]+') do
    local name, tokens = string.match(one, '^{"role":"user","seq":%d+,"part":"([a-z_]+)","tokens":(%d+)')
    parts[#parts + 1] = { name = name, tokens = tonumber(tokens), text = one .. '\n' }
  end
  return parts
end
