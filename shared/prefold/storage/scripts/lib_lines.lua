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
    cut = cut == '1', kind = kind, role = role == 'u' and 'user' or 'assistant',
    content = f.c, short = f.s, closer = f.k,
  }
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

-- Head lines of the active summary: the summaries' field is a line of JSON (the record), then these.
local function active_head(m)
  if m.cov == 0 then return '' end
  local stored = redis.call('HGET', SUMMARIES, m.sver)
  return stored and string.match(stored, '^[^\n]*\n(.*)$') or ''
end

local function split_head(text)
  local parts = {}
  for one in string.gmatch(text, '[^\n]+') do
    local name, tokens = string.match(one, '^{"role":"user","seq":%d+,"part":"([a-z_]+)","tokens":(%d+)')
    parts[#parts + 1] = { name = name, tokens = tonumber(tokens), text = one .. '\n' }
  end
  return parts
end
