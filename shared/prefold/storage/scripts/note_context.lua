-- note_context(incarnation, record, most, ttl_ms) -> 1 | 0
-- Keeps the record of a context that was served, the newest first. 0: that life of the session is over.
-- Keys: meta, contexts. Atomic, because an erasure must not be followed by a record of what it erased.
if redis.call('HGET', KEYS[1], 'incarnation') ~= ARGV[1] then return 0 end
redis.call('LPUSH', KEYS[2], ARGV[2])
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[3]) - 1)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
