-- forget_events(group, entry id…) -> number of entries removed
-- Takes entries out of a partition's stream, delivered ones out of their reader's hands too. Those that `group` was not
-- given yet count as read: else they would be taken for ones that the cap dropped.
-- Keys: events. Atomic, because a reader in between would be set back.
local function later(a, b)
  local a_ms, a_number = string.match(a, '^(%d+)-(%d+)$')
  local b_ms, b_number = string.match(b, '^(%d+)-(%d+)$')
  if a_ms ~= b_ms then return tonumber(a_ms) > tonumber(b_ms) end
  return tonumber(a_number) > tonumber(b_number)
end

local group = nil
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local one = {}
  for i = 1, #flat, 2 do one[flat[i]] = flat[i + 1] end
  if one.name == ARGV[1] then group = one end
end
local removed, unread = 0, 0
for i = 2, #ARGV do
  if group then redis.call('XACK', KEYS[1], ARGV[1], ARGV[i]) end
  local gone = redis.call('XDEL', KEYS[1], ARGV[i])
  removed = removed + gone
  if group and gone == 1 and later(ARGV[i], group['last-delivered-id']) then unread = unread + 1 end
end
local read = group and (group['entries-read'] or group['last-delivered-id'] == '0-0' and 0)
if unread > 0 and read then
  redis.call('XGROUP', 'SETID', KEYS[1], ARGV[1], group['last-delivered-id'], 'ENTRIESREAD', read + unread)
end
return removed
