-- count_dropped(group, kept_ms) -> number of events
-- How many events the cap has dropped since the last call before `group` was given them. Adds them to the partition's
-- count and notes them as read, so that none is counted twice, whoever asks.
-- Keys: events, dropped. Atomic, because a reader in between would be set back.
local group, dropped = nil, 0

local function fields(flat)
  local named = {}
  for i = 1, #flat, 2 do named[flat[i]] = flat[i + 1] end
  return named
end

local function before(a, b)
  local a_ms, a_number = string.match(a, '^(%d+)-(%d+)$')
  local b_ms, b_number = string.match(b, '^(%d+)-(%d+)$')
  if a_ms ~= b_ms then return tonumber(a_ms) < tonumber(b_ms) end
  return tonumber(a_number) < tonumber(b_number)
end

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local one = fields(flat)
  if one.name == ARGV[1] then group = one end
end
if not group then return 0 end
local stream = fields(redis.call('XINFO', 'STREAM', KEYS[1]))
local first = stream['first-entry'] and stream['first-entry'][1]
if first and not before(group['last-delivered-id'], first) then return 0 end
-- All that is left is unread, so what is gone and was not read was dropped.
local gone = stream['entries-added'] - stream.length
local read = group['entries-read'] or (group['last-delivered-id'] == '0-0' and 0 or gone)
dropped = gone - read
if dropped <= 0 then return 0 end
redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], group['last-delivered-id'], 'ENTRIESREAD', gone)
redis.call('INCRBY', KEYS[2], dropped)
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return dropped
