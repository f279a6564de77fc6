-- forget_letters(what, which) -> number of letters removed
-- what 'one': the letter `which`; 'session': all of that session; 'older': all set aside more than `which` ms ago.
-- Keys: ingest, ingest_dead, ingest_dead_why, ingest_dead_text. Atomic, because a replay must not bring back one of them.
local what, which = ARGV[1], ARGV[2]
if what == 'one' then return remove_letter(which) end
if what == 'older' then return remove_older(now_ms() - tonumber(which)) end
local removed = 0
for _, name in ipairs(redis.call('ZRANGE', DEAD, 0, -1)) do
  if string.match(name, '^%S+ (.*)$') == which then removed = removed + remove_letter(name) end
end
return removed
