-- keep_segment(now, label, incarnation, epoch, "level:first-last", value) -> 1 | 0
-- Keeps the summary of a run of turns. 0: the ticket is void, because a later build, an erasure or a change of the
-- covered turns raised the epoch. Writing it twice changes nothing.
-- Keys: meta, tomb, segments (ends with the session). Atomic, because nothing may come back that a change took out.
local m = load_state()
if not m or m.inc ~= ARGV[3] or redis.call('HGET', TOMB, 'epoch') ~= ARGV[4] or m.bcov == 0 then return 0 end
if tonumber(string.match(ARGV[5], '%d+$')) > m.bcov then return 0 end
redis.call('HSET', SEGMENTS, ARGV[5], ARGV[6])
redis.call('PEXPIREAT', SEGMENTS, m.ends)
return 1
