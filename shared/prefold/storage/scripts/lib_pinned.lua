-- What put_state and cut_state do: see there.
local function replace_pinned()
  local now, label, expected, body, tokens = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
  local m = load_state()
  if not m then return { redis.call('HGET', TOMB, 'erased') == '1' and 'gone' or 'none' } end
  if ARGV[6] ~= '' and ARGV[6] ~= m.inc then return { 'none' } end
  if is_unsure(m) then return { 'changing' } end
  local version = tonumber(redis.call('HGET', META, 'state_version') or 0)
  if version ~= expected then return { 'conflict', version } end
  local beside = m.fix - m.pintok
  if tokens > m.pintok and m.hard - beside - tokens < 2 * MIN_ROOM then
    return { 'no_room', math.max(0, m.hard - beside - 2 * MIN_ROOM) }
  end
  local room_before = room(m)
  m.pintok = tokens
  m.fix = fixed(m)
  cap_calibration(m)
  redis.call('HSET', META, 'state_version', version + 1)
  if body == '' then redis.call('HDEL', META, 'pinned') else redis.call('HSET', META, 'pinned', body) end
  m.ver = m.ver + 1
  redis.call('SETRANGE', CONTEXT, 11, string.format('%-10d', m.ver))
  refit(m, room(m) > room_before)
  m.nocut, m.rest = 0, 0
  note_pace(m, 0, now)
  m.updated = now
  if build_wanted(m) then
    if m.want == 0 then m.want = now end
    redis.call('ZADD', DUE, 'LT', now, 'compact:' .. life(label, m))
  end
  keep_life(m)
  save_state(m)
  return { 'ok', version + 1 }
end
