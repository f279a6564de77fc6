-- fork_log(now, label, 'push', origin, token, count, (entry id, fields, field…)…, pairs, (id, value)…)
--   -> {'pushed'} | {'same', incarnation, unchecked} | {'exists' | 'restart'} | {'changing', ms}
-- fork_log(now, label, 'publish', origin, token, last, incarnation, retention_ms, "name=number …", changes, fields,
--          (name, value)…, summaries, (version, body)…, segments, (range, body)…) -> {'ok', incarnation} | as above
-- fork_log(now, label, 'confirm', origin, incarnation, retention_ms) -> {'confirmed'} | {'restart' | 'gone'}: this life is over
-- fork_log(now, label, 'drop', origin, token) -> {'dropped'}, the stage being of no use
-- Makes a session of turns that were read from another one: `push` adds them in order to the stage, `publish` puts a new
-- life in place whose log they are, with the newest of `summaries` that stands at its end. `origin` ("life last_seq") is
-- kept, so that the same fork again answers `same`; any other session of this name answers `exists`. `restart`: the
-- stage is not what its maker thinks. Until it is confirmed a fork is `unchecked` (the source's counter of changes when it
-- was copied; '' afterwards): it takes no
-- turns and no changes, whoever asks for it looks at the source first, and it ends soon when nobody does.
-- Keys: all of the new session, staged copies too. Atomic, because a session must not be seen before it is whole.
local now, label, op, origin, token = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local existing = redis.call('HMGET', META, 'state', 'forked_from', 'incarnation', 'unchecked')
if op == 'confirm' then
  if existing[3] ~= token then return { redis.call('HGET', TOMB, 'erased') == '1' and 'gone' or 'restart' } end
  if existing[4] then
    local m = load_state()
    redis.call('HDEL', META, 'unchecked')
    m.leads = m.leads - UNSURE
    extend_life(m, label, now, tonumber(ARGV[6]), true)
    save_state(m)
  end
  return { 'confirmed' }
end
if existing[1] then
  if existing[2] ~= origin then return { 'exists' } end
  return { 'same', existing[3], existing[4] or '' }
end

local stage, wait_ms = hold_stage(token, 0, now)
if not stage then return { 'changing', wait_ms } end

if op == 'drop' then
  drop_stage()
  return { 'dropped' }
end
if op == 'push' then
  local at = 7
  for _ = 1, tonumber(ARGV[6]) do
    local id, fields = ARGV[at], {}
    for i = 1, tonumber(ARGV[at + 1]) do fields[i] = ARGV[at + 1 + i] end
    at = at + 2 + #fields
    if tonumber(string.match(id, '^%d+')) > stage.last then stage_entry(stage, id, fields) end
  end
  for i = 1, tonumber(ARGV[at]) do redis.call('HSET', STAGED_IDS, ARGV[at + 2 * i - 1], ARGV[at + 2 * i]) end
  save_stage(stage, now)
  return { 'pushed' }
end

if stage.last ~= tonumber(ARGV[6]) then return { 'restart' } end
local given = {}
for name, number in string.gmatch(ARGV[9], '([a-z]+)=(%d+)') do given[name] = tonumber(number) end
local m = new_state(ARGV[7], now, string.format('%d %d %d %d %d', given.hard, given.ratio, given.keep, given.idle, given.lead))
for name, number in pairs(given) do m[name] = number end
m.head, m.ends = stage.last, now + ARGV[8]
redis.call('HDEL', TOMB, 'erased')
redis.call('HSET', META, 'incarnation', m.inc, 'label', label, 'forked_from', origin, 'unchecked', ARGV[10])
local at = 12
for _ = 1, tonumber(ARGV[11]) do
  redis.call('HSET', META, ARGV[at], ARGV[at + 1])
  at = at + 2
end
for i = 1, tonumber(ARGV[at]) do redis.call('HSET', SUMMARIES, ARGV[at + 2 * i - 1], ARGV[at + 2 * i]) end
at = at + 1 + 2 * tonumber(ARGV[at])
for i = 1, tonumber(ARGV[at]) do redis.call('HSET', SEGMENTS, ARGV[at + 2 * i - 1], ARGV[at + 2 * i]) end
publish_stage(m, stage)
count_anew(m, stage)
if redis.call('EXISTS', STAGED_IDS) == 1 then
  redis.call('RENAME', STAGED_IDS, IDS)
end
fall_back(m, m.head)
rebuild(m)
if m.head > 0 then announce(m, label, 1, now, 0) end
extend_life(m, label, now, tonumber(ARGV[8]), true)
redis.call('ZADD', DUE, now + STAGE_ENDS_MS, 'expire:' .. life(label, m))
m.leads = m.leads + UNSURE
save_state(m)
return { 'ok', m.inc }
