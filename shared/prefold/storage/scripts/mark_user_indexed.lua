-- mark_user_indexed(version, id, …) -> how many
-- The vectors of these rows are as the rows were at `version`. One that was written since stays to be done.
-- Keys: unindexed (set: id by the version that wrote it). Atomic, because a write must not come between look and removal.
local marked = 0
for i = 2, #ARGV do
  local written = redis.call('ZSCORE', U_UNINDEXED, ARGV[i])
  if written and tonumber(written) <= tonumber(ARGV[1]) then
    marked = marked + redis.call('ZREM', U_UNINDEXED, ARGV[i])
  end
end
return marked
