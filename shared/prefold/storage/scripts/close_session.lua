-- close_session(now, label) -> {'ok'} | {'none' | 'gone' | 'changing'}
-- Asks for the session's end: what is worth remembering is taken out of all of its turns, at once. One that is closed
-- already stays so. Keys: meta, tomb, due. Atomic, because the wish must be in `due` as soon as it is noted.
local now, label = clock(ARGV[1]), ARGV[2]
local m = load_state()
if not m then return { redis.call('HGET', TOMB, 'erased') == '1' and 'gone' or 'none' } end
if is_unsure(m) then return { 'changing' } end
local closed = tonumber(string.match(redis.call('HGET', META, 'closed') or '', '^%d+') or 0)
if closed < m.head then
  redis.call('HSET', META, 'closing', m.head)
  remember_by(m, label, now)
  save_state(m)
end
return { 'ok' }
