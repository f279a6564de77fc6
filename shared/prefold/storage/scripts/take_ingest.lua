-- take_ingest(owner, lease_ms, after, count, most_bytes, most_entry_bytes, used_ms)
--   -> { {id, bytes, session, {name, value, …}}, … } | { 'held', ms }
-- Takes or keeps the lease of a tenant's ingest stream and gives the entries behind `after` ('': from the first one), up
-- to `count` of them and about `most_bytes`. One over `most_entry_bytes` comes without its fields. `held`: another
-- reader has the lease for so long. With lease_ms 0 the lease is given back.
-- Keys: ingest, ingest_lease (string, ends with the lease), ingest_used (string, there for used_ms after an entry was:
-- whoever erases a session has to know that the server's file may hold its words). Atomic, because nobody else may read between both.
local INGEST, LEASE = KEYS[1], KEYS[2]
local owner, lease = ARGV[1], tonumber(ARGV[2])
local holder = redis.call('GET', LEASE)
if holder and holder ~= owner then return { 'held', math.max(1, redis.call('PTTL', LEASE)) } end
if lease == 0 then
  redis.call('DEL', LEASE)
  return {}
end
redis.call('SET', LEASE, owner, 'PX', lease)

local count, most, most_entry = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local after = ARGV[3] == '' and '-' or '(' .. ARGV[3]
local out, bytes, page = {}, 0, 1
while #out < count and bytes < most do
  local entries = redis.call('XRANGE', INGEST, after, '+', 'COUNT', math.min(page, count - #out))
  if #entries == 0 then break end
  local largest = 1
  for _, entry in ipairs(entries) do
    local size, session = 0, ''
    for i = 1, #entry[2], 2 do
      size = size + #entry[2][i] + #entry[2][i + 1]
      if entry[2][i] == 'session' and #entry[2][i + 1] <= 128 then session = entry[2][i + 1] end
    end
    largest = math.max(largest, size)
    local is_whole = size <= most_entry
    out[#out + 1] = { entry[1], size, session, is_whole and entry[2] or {} }
    bytes = bytes + (is_whole and size or 0)
    after = '(' .. entry[1]
  end
  -- A page is copied before its size is known: it grows only while the entries are small.
  page = math.max(1, math.min(32, 2 * page, math.floor(262144 / largest)))
end
if #out > 0 then redis.call('SET', KEYS[3], '', 'PX', ARGV[7]) end
return out
