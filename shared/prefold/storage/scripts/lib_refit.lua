-- Refit: the end of every script that changes a session. Afterwards the context is within its limit.
-- Over it, or degraded with a swappable standby: swap. Still over: the ladder, down to the low mark.

-- One RENAME; the old context is freed in the background. The stored record moves to the applied ones.
local function swap(m)
  m.ver, m.swaps = m.ver + 1, m.swaps + 1
  redis.call('RENAME', NEXT, CONTEXT)
  redis.call('SETRANGE', CONTEXT, 11, string.format('%-10d', m.ver))
  redis.call('HSET', SUMMARIES, m.ver, redis.call('HGET', STANDBY, 'body'))
  redis.call('PEXPIREAT', SUMMARIES, m.ends)
  redis.call('DEL', STANDBY)
  m.cov, m.sver, m.tok, m.full, m.htok = m.nx, m.ver, m.ntok, m.ntok, m.nhtok
  m.bytes = m.nbytes
  m.nx, m.ntok, m.nhtok, m.n0, m.nbytes = 0, 0, 0, 0, 0
  m.deg, m.gap, m.lost, m.fresh = 0, 0, 0, 1
  -- The count may come down only now, and only by steps: a low report may have spoken of a smaller read.
  if m.seen > 0 then m.cal = math.max(m.seen, math.floor(m.cal * 0.9)); cap_calibration(m) end
end

-- A standby waits while a round with thinking blocks is open: its blocks must not lose their context.
local function can_swap(m) return m.nx > 0 and not (m.open ~= '' and m.thinks == 1) end

-- The user's turn `seq` as a head line: whole while it is short, else by its short form.
local function kept_turn(seq, part, most)
  local raw = redis.call('XRANGE', TURNS, seq .. '-0', seq .. '-0')[1]
  if not raw then return nil end
  local e = entry_of(raw)
  if e.tokens > most and e.short then
    return { name = part, seq = seq, tokens = e.short_tokens, text = part_line('user', seq, part, e.short_tokens, e.short) }
  end
  return { name = part, seq = seq, tokens = e.tokens, text = part_line('user', seq, part, e.tokens, e.content) }
end

local function has_part(parts, name)
  for _, p in ipairs(parts) do if p.name == name then return true end end
  return false
end

-- A turn that a build carried is in its summary: once a newer one needs the place, it goes. Returns the tokens freed.
local function drop_carried(head)
  for i, p in ipairs(head) do
    if p.name == 'task' and not p.seq then table.remove(head, i); return p.tokens end
  end
  return 0
end

-- Puts what must survive a gap that reaches to `gap_to` into the head: the first user message, the newest.
local function keep_across_gap(m, head, gap_to)
  local most = math.floor(room(m) / 10)
  local added = 0
  local function keep(seq, part)
    if seq > m.cov and seq <= gap_to and not has_part(head, part) then
      local p = kept_turn(seq, part, most)
      if p then head[#head + 1] = p; added = added + p.tokens end
    end
  end
  if m.cov < m.fu then keep(m.fu, 'first_message') end
  if m.lu ~= m.fu and m.lu > m.cov and m.lu <= gap_to then
    added = added - drop_carried(head)
    keep(m.lu, 'task')
  end
  return added
end

local function last_group(entries)
  for i = #entries, 1, -1 do if entries[i].cut then return i end end
  return 1
end

-- `held`: what an entry counts in the view that is being made. The first entry stands without its closer.
local function hold_all(entries)
  local total = 0
  for i, e in ipairs(entries) do
    e.held = e.content == '' and 0 or e.tokens + (i > 1 and e.closer_tokens or 0)
    total = total + e.held
  end
  return total
end

local function shorten(e)
  if e.is_short or not e.short then return 0 end
  e.is_short, e.held = true, e.held - e.tokens + e.short_tokens
  return e.tokens - e.short_tokens
end

-- Takes the group that starts at `start` out; returns where the next one starts, and the tokens freed.
local function drop_group(entries, start, stop)
  local freed = 0
  repeat
    freed, start = freed + entries[start].held, start + 1
  until start >= stop or entries[start].cut
  local first = entries[start]
  if first and first.closer then
    freed, first.held = freed + first.closer_tokens, first.held - first.closer_tokens
  end
  return start, freed
end

-- Order in which head fragments yield, when everything else has.
local YIELDS = { 'summary', 'ledger', 'first_message', 'task' }

local function write_view(m, head, gap_first, gap_last, entries, start)
  local head_tokens, out = 0, {}
  for _, p in ipairs(head) do head_tokens = head_tokens + p.tokens; out[#out + 1] = p.text end
  local sum = head_tokens
  if gap_last >= gap_first then
    out[#out + 1], sum = gap_line(gap_first, gap_last), sum + GAP_TOKENS
  end
  if #out == 0 and m.opens == 1 then out[1], sum = opener_line(), sum + OPENER_TOKENS end
  for i = start, #entries do
    local text, tokens = entry_lines(entries[i], i == start, entries[i].is_short)
    out[#out + 1], sum = text, sum + tokens
  end
  m.ver, m.tok, m.htok = m.ver + 1, sum, head_tokens
  local text = header(m, m.cov, head_tokens) .. table.concat(out)
  redis.call('SET', CONTEXT, text, 'KEEPTTL')
  m.bytes = #text
end

-- The head beside a marker for everything else: the newest user turn, then what fits, in order of precedence.
local function head_alone(m, head, limit)
  local total, taken, out = GAP_TOKENS, {}, {}
  local newest = m.lu > 0 and kept_turn(m.lu, m.lu == m.fu and 'first_message' or 'task', 0)
  if newest and total + newest.tokens <= limit then
    taken[newest.name], total = newest, total + newest.tokens
  end
  for i = #YIELDS, 1, -1 do
    for _, p in ipairs(head) do
      if p.name == YIELDS[i] and not taken[p.name] and total + p.tokens <= limit then
        taken[p.name], total = p, total + p.tokens
      end
    end
  end
  for _, name in ipairs({ 'first_message', 'ledger', 'summary', 'task' }) do out[#out + 1] = taken[name] end
  return out, taken.summary ~= nil
end

-- The turns after `seq` that a view of `limit` tokens can hold, and what it surely leaves out reaches to. Read from the
-- end, by groups, because after a change the window may be the whole log.
local function entries_within(seq, limit)
  local found, total, upper, whole = {}, 0, '+', false
  repeat
    local page = redis.call('XREVRANGE', TURNS, upper, (seq + 1) .. '-0', 'COUNT', 64)
    for _, raw in ipairs(page) do
      local e = entry_of(raw)
      found[#found + 1], upper = e, '(' .. raw[1]
      total = total + (e.kind == 'r' and e.short and e.short_tokens or e.tokens)
      if total > limit and e.cut then whole = true; break end
    end
  until whole or #page == 0
  local out = {}
  for i = #found, 1, -1 do out[#out + 1] = found[i] end
  local is_cut_off = whole and #redis.call('XREVRANGE', TURNS, upper, (seq + 1) .. '-0', 'COUNT', 1) > 0
  return out, is_cut_off and out[1].seq - 1 or seq
end

local function ladder(m)
  local limit = room(m)
  local low = math.floor(limit * LOW_MARK)
  local gap_first = m.cov + 1
  local entries, gap_last = entries_within(math.max(m.cov, m.gap), limit)
  local head = split_head(active_head(m))
  local total = hold_all(entries) + GAP_TOKENS
  for _, p in ipairs(head) do total = total + p.tokens end
  total = total + keep_across_gap(m, head, gap_last)
  local newest, start = last_group(entries), 1
  -- 1. Old tool results by their short forms.
  for i = 1, newest - 1 do
    if total <= low then break end
    if entries[i].kind == 'r' then total = total - shorten(entries[i]) end
  end

  -- 2. Oldest whole groups out.
  while total > low and start < newest do
    local freed
    start, freed = drop_group(entries, start, newest)
    gap_last = entries[start - 1].seq
    total = total - freed + keep_across_gap(m, head, gap_last)
  end

  -- 3. Short forms inside the newest group, the newest turn last and only for the limit's sake.
  for i = start, #entries do
    if total <= (i < #entries and low or limit) then break end
    total = total - shorten(entries[i])
  end

  -- 4. Head fragments out whole; without its summary the gap reaches back to the first turn.
  local whole_head = { unpack(head) }
  for _, name in ipairs(YIELDS) do
    for i = #head, 1, -1 do
      if total > limit and head[i].name == name then
        total = total - head[i].tokens
        if name == 'summary' then gap_first = 1 end
        table.remove(head, i)
      end
    end
  end

  -- 5. Not even the newest group fits: a marker stands for it. Results that are still to come are late.
  if total > limit and #entries > 0 then
    local has_summary
    start, gap_last = #entries + 1, entries[#entries].seq
    head, has_summary = head_alone(m, whole_head, limit)
    gap_first = has_summary and m.cov + 1 or 1
    m.lost = m.open ~= '' and 1 or 0
  end

  write_view(m, head, gap_first, gap_last, entries, start)
  m.deg, m.gap = 1, gap_last > m.cov and gap_last or 0
end

-- The whole window again, once it fits (a higher limit, a rewind).
local function restore(m)
  write_view(m, split_head(active_head(m)), 1, 0, entries_after(m.cov), 1)
  m.full, m.deg, m.gap, m.lost = m.tok, 0, 0, 0
end

-- Returns true when it swapped. `more`: there is more room than before, so a degraded view is made anew.
local function refit(m, more)
  local swapped = false
  if (m.deg == 1 or m.tok > room(m)) and can_swap(m) then swap(m); swapped = true end
  if m.deg == 1 and m.full <= room(m) then restore(m) end
  if m.deg == 1 and more then m.gap, m.lost, m.tok = 0, 0, math.max(m.tok, room(m) + 1) end
  if m.tok > room(m) then ladder(m) end
  return swapped
end
