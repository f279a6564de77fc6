-- admit_session(session, limit, kept_ms) -> 1 | 0
-- 1: the session is one of the tenant's live ones, as it was before or from now on; 0: there are `limit` others ('': no
-- limit). What was not seen for `kept_ms` is not live any more: its session has met its retention.
-- Keys: the tenant's live sessions, a sorted set of digests of their names by when they were seen (ms). It ends
-- `kept_ms` after its last use. Time is the server's. Atomic, because two must not take the last place.
local LIVE = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', LIVE, '-inf', string.format('(%.0f', now - tonumber(ARGV[3])))
local is_known = redis.call('ZSCORE', LIVE, ARGV[1])
if not is_known and ARGV[2] ~= '' and redis.call('ZCARD', LIVE) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', LIVE, string.format('%.0f', now), ARGV[1])
redis.call('PEXPIRE', LIVE, ARGV[3])
return 1
