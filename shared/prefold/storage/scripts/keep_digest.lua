-- keep_digest(now, label, incarnation, chg, body) -> 1 | 0
-- Keeps what the whole session comes to, `body` "upto json". 0: this life is over, turns changed since, or somebody else
-- has kept what more of its turns come to.
-- Keys: meta. Atomic, because nothing may come back that a change took out.
local m = load_state()
if not m or m.inc ~= ARGV[3] or m.chg ~= tonumber(ARGV[4]) then return 0 end
local kept = redis.call('HGET', META, 'digest')
if kept and tonumber(string.match(kept, '^%d+')) > tonumber(string.match(ARGV[5], '^%d+')) then return 0 end
redis.call('HSET', META, 'digest', ARGV[5])
return 1
