-- erase_user(now, ttl_ms) -> {facts, session, …}
-- Removes every key of the user but meta, whose epoch is raised: writers under way are refused. Twice is harmless.
-- Keys: all of the user (meta ends `ttl_ms` from now). Atomic, because nobody may read or write between two of the deletions.
local reply = redis.call('ZRANGE', U_SESSIONS, 0, -1)
table.insert(reply, 1, redis.call('HLEN', U_FACTS))
redis.call('UNLINK', U_FACTS, U_PROFILE, U_SUPPRESSED, U_UNINDEXED, U_SESSIONS)
redis.call('HINCRBY', U_META, 'epoch', 1)
redis.call('HINCRBY', U_META, 'version', 1)
redis.call('HSET', U_META, 'erased', ARGV[1])
redis.call('PEXPIRE', U_META, ARGV[2])
return reply
