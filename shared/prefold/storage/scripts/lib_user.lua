-- What the scripts of a user share. KEYS: meta, facts, profile, suppressed, unindexed, sessions.
-- meta: a hash: version, raised by each write; epoch, raised by an erasure; erased, when the last one was.
local U_META, U_FACTS, U_PROFILE, U_SUPPRESSED, U_UNINDEXED, U_SESSIONS = unpack(KEYS)

-- write_rows(version, epoch, ttl_ms, profile, then for each of put, drop, suppress, lift, unindexed: count, members…)
-- -> 1 | 0 | -1. A member of `put` is two: id and row.
local function write_rows()
  local epoch = redis.call('HGET', U_META, 'epoch') or '0'
  if epoch ~= ARGV[2] then return -1 end
  local version = redis.call('HGET', U_META, 'version') or '0'
  if version ~= ARGV[1] then return 0 end
  local at = 5
  local function each(width, action)
    local count = tonumber(ARGV[at])
    at = at + 1
    for _ = 1, count do
      action(ARGV[at], ARGV[at + 1])
      at = at + width
    end
  end
  version = redis.call('HINCRBY', U_META, 'version', 1)
  each(2, function(id, row) redis.call('HSET', U_FACTS, id, row) end)
  each(1, function(id) redis.call('HDEL', U_FACTS, id) end)
  each(1, function(digest) redis.call('ZADD', U_SUPPRESSED, version, digest) end)
  each(1, function(digest) redis.call('ZREM', U_SUPPRESSED, digest) end)
  redis.call('ZREMRANGEBYRANK', U_SUPPRESSED, 0, -MOST_SUPPRESSED - 1)
  each(1, function(id) redis.call('ZADD', U_UNINDEXED, version, id) end)
  if ARGV[4] == '' then redis.call('DEL', U_PROFILE) else redis.call('SET', U_PROFILE, ARGV[4]) end
  for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
  return 1
end
