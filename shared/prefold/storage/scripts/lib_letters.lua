-- Dead letters of a tenant's ingest stream. A letter's name is its entry's id, a space and the session ('' when that was
-- no name). `ingest_dead` (sorted set): name -> when, ms; `ingest_dead_why` (hash): name -> JSON without words;
-- `ingest_dead_text` (hash): name -> sizes of the entry's names and values, a line feed, these one after the other; its
-- field `bytes`: their sum. All end with the newest letter.
local INGEST, DEAD, WHY, TEXT = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function remove_letter(name)
  if redis.call('ZREM', DEAD, name) == 0 then return 0 end
  redis.call('HDEL', WHY, name)
  local size = redis.call('HSTRLEN', TEXT, name)
  if redis.call('HDEL', TEXT, name) == 1 and redis.call('HINCRBY', TEXT, 'bytes', -size) <= 0 then
    redis.call('HDEL', TEXT, 'bytes')
  end
  return 1
end

local function remove_older(than_ms)
  local old = redis.call('ZRANGEBYSCORE', DEAD, '-inf', than_ms)
  for _, name in ipairs(old) do remove_letter(name) end
  return #old
end
