-- State of a session: one packed string in the field `state` of its meta hash. fields.py says what is in it and makes
-- unpack_state and pack_state.
-- Every session script gets the same keys in the same order.
local META, TOMB, TURNS, IDS, CONTEXT = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local NEXT, STANDBY, SUMMARIES, EVENTS, DUE, SEGMENTS = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]

local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function load_state()
  local packed = redis.call('HGET', META, 'state')
  return packed and unpack_state(packed)
end

local function save_state(m) redis.call('HSET', META, 'state', pack_state(m)) end

-- `defaults`: "hard ratio keep idle lead"; ratio 0: it adapts.
local function new_state(incarnation, now, defaults)
  local hard, ratio, keep, idle, lead = string.match(defaults, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  local adapts = ratio == '0'
  return {
    inc = incarnation, created = now, updated = now, spoken = now, ends = 0,
    hard = tonumber(hard), ratio = adapts and MOST_RATIO or tonumber(ratio), keep = tonumber(keep), cal = 1000, seen = 0,
    adapt = adapts and 1 or 0, flow = 0, lead = tonumber(lead), want = 0, rest = 0,
    idle = tonumber(idle), mdue = 0,
    head = 0, log = 0, ver = 1, swaps = 0, cov = 0, sver = 0, tok = 0, full = 0, htok = 0,
    fix = 0, systok = 0, leadtok = 0, tooltok = 0, pintok = 0,
    bytes = 0, nbytes = 0, deg = 0, gap = 0, lost = 0, fresh = 0, cross = 0, ready = 0, edue = 0,
    nx = 0, ntok = 0, nhtok = 0, n0 = 0, bcov = 0, blease = 0, retry = 0, nocut = 0,
    open = '', thinks = 0, answered = 0, lu = 0, lucum = 0, luver = 0, fu = 0, leads = 1, opens = 0, chg = 0,
  }
end

-- A fork whose source has not been looked at again: it may be taken back, so nothing may be built upon it yet.
local function is_unsure(m) return m.leads >= UNSURE end

-- Due entries and events name one life of a session.
local function life(label, m) return label .. ':' .. m.inc end

-- Served tokens of `raw` tokens: the model's own count, as far as it is known.
local function served(m, raw) return math.ceil(raw * m.cal / 1000) end

-- Raw tokens that the context string may hold beside system and tools.
local function room(m) return math.floor(m.hard * 1000 / m.cal) - m.fix end

-- Raw tokens of the context string past which a standby is wanted.
local function soft_room(m) return math.floor(room(m) * m.ratio / 1000) end

-- Keeps the calibration from eating the room that the newest turn and a marker need.
local function cap_calibration(m)
  m.cal = math.max(1000, math.min(m.cal, math.floor(m.hard * 1000 / (m.fix + MIN_ROOM))))
end

-- All keys of a session share one end of life, and a due entry erases it in order a little before. `force` after a
-- script made a key.
local function extend_life(m, label, now, retention, force)
  local end_at = now + retention
  if not force and end_at - m.ends < DAY_MS then return end
  m.ends = math.max(m.ends, end_at)
  redis.call('ZADD', DUE, m.ends - math.min(EXPIRE_AHEAD_MS, math.floor(retention / 10)), 'expire:' .. life(label, m))
  for i = 1, 8 do redis.call('PEXPIREAT', KEYS[i], m.ends + (i == 2 and TOMB_EXTRA_MS or 0)) end
  redis.call('PEXPIREAT', SEGMENTS, m.ends)
end

-- Raw tokens that stand beside the conversation in every context.
local function fixed(m) return m.systok + m.leadtok + m.tooltok + m.pintok end

-- Keys that a script made end with the others.
local function keep_life(m)
  for i = 3, 8 do redis.call('PEXPIREAT', KEYS[i], m.ends) end
end

local function status_of(m)
  if m.deg == 1 then return 'degraded' end
  if m.fresh == 1 then return 'swapped' end
  if m.tok >= soft_room(m) then return 'soft' end
  return 'ok'
end

-- Notes that `tokens` came now, and where the soft threshold is by that: what is free beyond it outlasts a build at the
-- pace of late.
local function note_pace(m, tokens, now)
  m.flow = math.floor(m.flow * math.exp(-math.max(0, now - m.updated) / PACE_MS) + tokens * 100)
  if m.adapt == 0 then return end
  local span = PACE_MS * (1 - math.exp(-math.max(PACE_LEAST_MS, now - m.created) / PACE_MS))
  local needed = m.flow / 100 / span * m.lead * LEAD_FACTOR
  m.ratio = math.max(LEAST_RATIO, math.min(MOST_RATIO, math.floor(1000 - needed * 1000 / room(m))))
end

-- A build is wanted: past the soft threshold, without a standby or when its uncovered tail has grown by a step. A
-- session whose builds came to nothing rests.
local function build_wanted(m)
  if m.rest > m.log or m.deg == 0 and m.tok < soft_room(m) then return false end
  return m.nx == 0 or m.ntok - m.n0 >= math.floor(room(m) * REFRESH_STEP)
end

-- Where turns are left out for want of a summary, one is made without a model: a pause because that was away is over.
local function needs_no_model(m, reason) return m.deg == 1 and string.match(reason or '', '^model_') ~= nil end

-- The session is to be looked at for what is worth remembering at `at`, or before.
local function remember_by(m, label, at)
  m.mdue = 1
  redis.call('ZADD', DUE, 'LT', string.format('%d', at), 'remember:' .. life(label, m))
end

-- APPEND doubles a string's room whenever it is full. BITOP of one string makes it anew, exactly as long as it is and
-- without an end of life, and only its name goes to the file and the replicas, where a SET would send every word again.
-- A user of the server without leave to BITOP (an ACL of before) goes without. `least`, `most`: bytes of a string.
local function fit_strings(m, least, most)
  for i = 5, 6 do
    local size = i == 5 and m.bytes or m.nbytes
    if size > least and size < most and type(redis.pcall('BITOP', 'OR', KEYS[i], KEYS[i])) == 'number' then
      redis.call('PEXPIREAT', KEYS[i], m.ends)
    end
  end
end

-- Tells the dispatcher of the turns from `first` on: an event, which may be lost, and due entries, which stay.
local function announce(m, label, first, now, grace)
  local who = life(label, m)
  local wanted = build_wanted(m)
  if wanted and m.want == 0 then m.want = now end
  if m.edue == 0 then
    m.edue = 1
    redis.call('ZADD', DUE, 'LT', now + grace, 'embed:' .. who)
  end
  if m.mdue == 0 and m.idle > 0 then remember_by(m, label, now + m.idle) end
  if wanted then redis.call('ZADD', DUE, 'LT', now + grace, 'compact:' .. who) end
  local build = wanted and m.blease <= now
    and (m.retry <= now or m.deg == 1 and needs_no_model(m, redis.call('HGET', META, 'build_error')))
  redis.call('XADD', EVENTS, '*', 'turns', who .. ' ' .. first .. ' ' .. m.head .. (build and ' 1' or ' 0'))
  if now % TRIM_EVERY == 0 then redis.call('XTRIM', EVENTS, 'MAXLEN', '~', EVENTS_KEPT) end
end
