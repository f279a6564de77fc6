-- commit_build(now, label, incarnation, epoch, covers_to, record, coverage, count, (part, tokens, content)…)
--   -> {'standby' | 'swapped', version, tokens, ms since it was wanted} | {'stale'} | {'no_gain'}
-- Makes the standby: writes `next`, its head and the turns after covers_to in full. Refused when incarnation or
-- epoch moved on, when covers_to is no cut now or not beyond what is covered, or when nothing would be gained.
-- Swaps at once when the context is degraded or over its limit. Committing twice changes nothing: 'stale'.
-- Keys: all of the session. Atomic, because the check and the swap must see one log.
local now, label, incarnation = clock(ARGV[1]), ARGV[2], ARGV[3]
local covers_to = tonumber(ARGV[5])
local m = load_state()
if not m or m.inc ~= incarnation or redis.call('HGET', TOMB, 'epoch') ~= ARGV[4] then return { 'stale' } end
if m.bcov ~= covers_to then return { 'stale' } end
if covers_to <= m.cov or covers_to <= m.nx then return { 'stale' } end
local entries = entries_after(covers_to)
if #entries == 0 and m.open ~= '' or #entries > 0 and not entries[1].cut then return { 'stale' } end

local head, head_tokens, carries = {}, 0, false
for i = 0, tonumber(ARGV[8]) - 1 do
  local part, tokens = ARGV[9 + 3 * i], tonumber(ARGV[10 + 3 * i])
  head[#head + 1] = part_line('user', 0, part, tokens, ARGV[11 + 3 * i])
  head_tokens = head_tokens + tokens
  carries = carries or part == 'task'
end
if covers_to >= m.lu and m.lu > 0 and m.lu ~= m.fu and not carries then return { 'stale' } end

local out, tokens = {}, head_tokens
for i, e in ipairs(entries) do
  local text, count = entry_lines(e, i == 1, false)
  out[i], tokens = text, tokens + count
end
if tokens >= m.full then return { 'no_gain' } end

local lines = table.concat(head)
m.nx, m.ntok, m.nhtok, m.n0 = covers_to, tokens, head_tokens, tokens
m.bcov, m.blease, m.retry, m.rest = 0, 0, 0, 0
local waited = m.want > 0 and math.max(0, now - m.want) or 0
m.want = 0
m.ver = m.ver + 1
local text = header(m, covers_to, head_tokens) .. lines .. table.concat(out)
redis.call('SET', NEXT, text)
m.nbytes = #text
m.ver = m.ver - 1
redis.call('DEL', STANDBY)
redis.call('HSET', STANDBY, 'covers_to', covers_to, 'built_at', now, 'coverage', ARGV[7], 'tokens', tokens, 'record', ARGV[6],
  'body', summary_body(covers_to, head_tokens, carries, ARGV[6], lines))
redis.call('HDEL', META, 'build_error')
local swapped = false
if m.deg == 1 or m.full > room(m) then swapped = refit(m) end
redis.call('ZREM', DUE, 'compact:' .. life(label, m))
if build_wanted(m) then
  m.want = now
  redis.call('ZADD', DUE, now, 'compact:' .. life(label, m))
end
if covers_to > tonumber(redis.call('HGET', META, 'remembered') or 0) then remember_by(m, label, now) end
keep_life(m)
save_state(m)
return { swapped and 'swapped' or 'standby', m.ver, served(m, m.tok + m.fix), waited }
