-- Changes of stored turns. Entries of a stream cannot be changed, and deleting one leaves its bytes, so the log is copied
-- in bounded steps (the stage) and the copy takes its place in one step. The stage ends by itself when its maker dies.
local STAGED, STAGED_IDS = KEYS[12], KEYS[13]

-- What has been copied: "token until changes last total newest_user its_total first_user".
local function load_stage()
  local stored = redis.call('HGET', STAGED_IDS, 'stage')
  if not stored then return nil end
  local token, numbers = string.match(stored, '^(%S+) (.*)$')
  local n = {}
  for one in string.gmatch(numbers, '%d+') do n[#n + 1] = tonumber(one) end
  return { token = token, until_ms = n[1], chg = n[2], last = n[3], cum = n[4], lu = n[5], lucum = n[6], fu = n[7] }
end

local function save_stage(stage, now)
  redis.call('HSET', STAGED_IDS, 'stage', string.format('%s %d %d %d %d %d %d %d', stage.token, now + STAGE_HELD_MS,
    stage.chg, stage.last, stage.cum, stage.lu, stage.lucum, stage.fu))
  redis.call('PEXPIRE', STAGED, STAGE_ENDS_MS)
  redis.call('PEXPIRE', STAGED_IDS, STAGE_ENDS_MS)
end

local function drop_stage() redis.call('UNLINK', STAGED, STAGED_IDS) end

-- The stage of this attempt, begun if need be; or nil and for how long another attempt still has its place.
local function hold_stage(token, changes, now)
  local stage = load_stage()
  if stage and stage.token == token and stage.chg == changes then return stage end
  if stage and stage.token ~= token and stage.until_ms > now then return nil, stage.until_ms - now end
  drop_stage()
  return { token = token, chg = changes, last = 0, cum = 0, lu = 0, lucum = 0, fu = 0 }
end

-- Adds one entry, its running total made right.
local function stage_entry(stage, id, fields)
  local tokens, short, cum, closer, cut, rest = string.match(fields[2], '^(%d+) (%d+) (%d+) (%d+) (%d)( .*)$')
  stage.cum = stage.cum + tokens + closer
  stage.last = tonumber(string.match(id, '^%d+'))
  if tonumber(cum) ~= stage.cum then
    fields[2] = tokens .. ' ' .. short .. ' ' .. stage.cum .. ' ' .. closer .. ' ' .. cut .. rest
  end
  if cut == '2' then
    stage.lu, stage.lucum = stage.last, stage.cum
    if stage.fu == 0 then stage.fu = stage.last end
  end
  redis.call('XADD', STAGED, id, unpack(fields))
end

-- System turns that lead, and whether there is anything else.
local function count_leading(m)
  local texts, after = {}, '-'
  m.leads, m.opens, m.leadtok = 1, 0, 0
  repeat
    local page = redis.call('XRANGE', TURNS, after, '+', 'COUNT', 16)
    for _, raw in ipairs(page) do
      local e = entry_of(raw)
      if e.content ~= '' then
        m.leads, m.opens = 0, e.role == 'assistant' and 1 or 0
        return texts
      end
      if e.lead then
        local tokens, text = string.match(e.lead, '^(%d+) (.*)$')
        texts[#texts + 1], m.leadtok = text, m.leadtok + tokens
      end
      after = '(' .. raw[1]
    end
  until #page == 0
  return texts
end

-- The staged log takes the log's place.
local function publish_stage(m, stage)
  if stage.last > 0 then
    redis.call('RENAME', STAGED, TURNS)
  else
    -- An empty stream, so that the next turn does not make a key without an end.
    redis.call('UNLINK', TURNS)
    redis.call('XGROUP', 'CREATE', TURNS, 'none', '$', 'MKSTREAM')
    redis.call('XGROUP', 'DESTROY', TURNS, 'none')
  end
  redis.call('PEXPIREAT', TURNS, m.ends)
  redis.call('HDEL', STAGED_IDS, 'stage')
end

-- A short tail goes without a copy of the rest. A deleted entry keeps its bytes until its whole node of the stream goes,
-- so the turns that may share one with it (SHARED_ENTRIES, SHARED_BYTES) are deleted too and added again.
local function cut_tail(to_seq, head)
  local kept, bytes, upper = {}, 0, to_seq .. '-0'
  repeat
    local page = redis.call('XREVRANGE', TURNS, upper, '-', 'COUNT', 8)
    for _, raw in ipairs(page) do
      kept[#kept + 1], upper = raw, '(' .. raw[1]
      for _, value in ipairs(raw[2]) do bytes = bytes + #value end
    end
  until #page == 0 or #kept >= SHARED_ENTRIES or bytes >= SHARED_BYTES
  local ids = {}
  for seq = to_seq + 1, head do ids[#ids + 1] = seq .. '-0' end
  for _, raw in ipairs(kept) do ids[#ids + 1] = raw[1] end
  redis.call('XDEL', TURNS, unpack(ids))
  local left = redis.call('XREVRANGE', TURNS, '+', '-', 'COUNT', 1)[1]
  redis.call('XSETID', TURNS, head .. '-0', 'MAXDELETEDID', '0-1')
  redis.call('XSETID', TURNS, left and left[1] or '0-1')
  for i = #kept, 1, -1 do redis.call('XADD', TURNS, kept[i][1], unpack(kept[i][2])) end
end

-- What a stage would have counted of the turns up to `to_seq`.
local function sums_to(m, to_seq)
  local upper = to_seq .. '-0'
  local newest = redis.call('XREVRANGE', TURNS, upper, '-', 'COUNT', 1)[1]
  local sums = { cum = newest and entry_of(newest).cum or 0, lu = m.lu, lucum = m.lucum, fu = m.fu <= to_seq and m.fu or 0 }
  if m.lu <= to_seq then return sums end
  sums.lu, sums.lucum = 0, 0
  while sums.fu > 0 and sums.lu == 0 do
    for _, raw in ipairs(redis.call('XREVRANGE', TURNS, upper, sums.fu .. '-0', 'COUNT', 16)) do
      local e = entry_of(raw)
      upper = '(' .. raw[1]
      if e.asks then
        sums.lu, sums.lucum = e.seq, e.cum
        break
      end
    end
  end
  return sums
end

-- The session's numbers become what they would be had the log always been so.
local function count_anew(m, sums)
  m.log, m.lu, m.lucum, m.fu = sums.cum, sums.lu, sums.lucum, sums.fu
  m.luver, m.nocut = 0, 0
  m.open, m.thinks, m.answered, m.lost = '', 0, 0, 0
  local newest = redis.call('XREVRANGE', TURNS, '+', '-', 'COUNT', 1)[1]
  local open = newest and entry_of(newest).open
  if open then
    m.open, m.thinks, m.answered = string.sub(open, 4), tonumber(string.sub(open, 1, 1)), tonumber(string.sub(open, 2, 2))
  end
  local texts = count_leading(m)
  if #texts == 0 then
    redis.call('HDEL', META, 'lead_system')
  else
    redis.call('HSET', META, 'lead_system', table.concat(texts, '\\n\\n'))
  end
  m.fix = fixed(m)
  cap_calibration(m)
end

-- May this summary still stand before the turns that follow it now? Not where a call is open at its end, nor when it
-- covers the newest user turn and its head does not hold that.
local function stands(m, summary)
  local after = redis.call('XRANGE', TURNS, (summary.covers_to + 1) .. '-0', '+', 'COUNT', 1)[1]
  if not after then
    if m.open ~= '' then return false end
  elseif not entry_of(after).cut then
    return false
  end
  return m.lu == 0 or m.lu > summary.covers_to or m.lu == m.fu or summary.carries
end

local function drop_standby(m)
  redis.call('UNLINK', NEXT, STANDBY)
  m.nx, m.ntok, m.nhtok, m.n0, m.nbytes = 0, 0, 0, 0, 0
end

local function check_standby(m, intact)
  if m.nx == 0 then return end
  local summary = summary_of(redis.call('HGET', STANDBY, 'body'))
  if m.nx > intact or not stands(m, summary) then return drop_standby(m) end
  local out, tokens = {}, m.nhtok
  for i, e in ipairs(entries_after(m.nx)) do
    local text, count = entry_lines(e, i == 1, false)
    out[i], tokens = text, tokens + count
  end
  local text = header(m, m.nx, m.nhtok) .. summary.lines .. table.concat(out)
  redis.call('SET', NEXT, text, 'KEEPTTL')
  m.ntok, m.nbytes, m.n0 = tokens, #text, math.min(m.n0, tokens)
end

-- The newest applied summary that speaks of turns up to `intact` alone and stands here becomes the active one; newer
-- ones are gone for good.
local function fall_back(m, intact)
  local versions = redis.call('HKEYS', SUMMARIES)
  table.sort(versions, function(a, b) return tonumber(a) > tonumber(b) end)
  m.cov, m.sver, m.htok = 0, 0, 0
  for _, version in ipairs(versions) do
    local summary = summary_of(redis.call('HGET', SUMMARIES, version))
    if summary.covers_to <= intact and stands(m, summary) then
      m.cov, m.sver, m.htok = summary.covers_to, tonumber(version), summary.tokens
      return
    end
    redis.call('HDEL', SUMMARIES, version)
  end
end

-- Raw tokens of the whole context: head or opener, then the window, its first turn without a closer.
local function whole_tokens(m)
  local before = m.cov > 0 and redis.call('XREVRANGE', TURNS, m.cov .. '-0', '-', 'COUNT', 1)[1]
  local first = redis.call('XRANGE', TURNS, (m.cov + 1) .. '-0', '+', 'COUNT', 1)[1]
  local opener = m.cov == 0 and m.opens == 1 and OPENER_TOKENS or 0
  return m.htok + opener + m.log - (before and entry_of(before).cum or 0) - (first and entry_of(first).closer_tokens or 0)
end

-- The context made anew from the log. Returns true when it swapped.
local function rebuild(m)
  m.deg, m.gap, m.lost = 0, 0, 0
  m.full = whole_tokens(m)
  if m.full <= room(m) then
    restore(m)
    return false
  end
  m.tok = m.full
  return refit(m)
end

local function drop_segments(intact)
  for _, range in ipairs(redis.call('HKEYS', SEGMENTS)) do
    if tonumber(string.match(range, '%d+$')) > intact then redis.call('HDEL', SEGMENTS, range) end
  end
end

-- Everything that was made of turns after `intact` is void: standby, summaries, segments, context, work in flight.
local function derive_anew(m, intact)
  if math.max(m.bcov, m.nx) > intact then
    redis.call('HINCRBY', TOMB, 'epoch', 1)
    redis.call('PEXPIREAT', TOMB, m.ends + TOMB_EXTRA_MS)
  end
  if m.bcov > intact then m.bcov, m.blease = 0, 0 end
  m.chg, m.rest = m.chg + 1, 0
  drop_segments(intact)
  check_standby(m, intact)
  fall_back(m, intact)
  rebuild(m)
end
