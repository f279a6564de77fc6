-- keep_segment(now, label, incarnation, epoch, "level:first-last", value) -> 1 | 0
-- Keeps the summary of a run of turns. 0: the ticket is void, because a later build, an erasure or a change of the
-- covered turns raised the epoch. Writing it twice changes nothing. A shorter one from the same turn on, which this one
-- was made instead of, goes.
-- Keys: meta, tomb, segments (ends with the session). Atomic, because nothing may come back that a change took out.
local m = load_state()
if not m or m.inc ~= ARGV[3] or redis.call('HGET', TOMB, 'epoch') ~= ARGV[4] or m.bcov == 0 then return 0 end
if tonumber(string.match(ARGV[5], '%d+$')) > m.bcov then return 0 end
local level, first, last = string.match(ARGV[5], '^(%d+):(%d+)-(%d+)$')
if level == '0' then
  for _, range in ipairs(redis.call('HKEYS', SEGMENTS)) do
    local before = string.match(range, '^0:' .. first .. '%-(%d+)$')
    if before and tonumber(before) < tonumber(last) then redis.call('HDEL', SEGMENTS, range) end
  end
end
redis.call('HSET', SEGMENTS, ARGV[5], ARGV[6])
redis.call('PEXPIREAT', SEGMENTS, m.ends)
return 1
