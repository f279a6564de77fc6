-- drop_ingest(entry id…) -> number of entries removed
-- Takes out entries that are applied. An empty stream goes as a whole, so that a tenant's key ends when it publishes no
-- more.
-- Keys: ingest. Atomic, because a turn may be published between both.
local removed = redis.call('XDEL', KEYS[1], unpack(ARGV))
if redis.call('XLEN', KEYS[1]) == 0 then redis.call('UNLINK', KEYS[1]) end
return removed
