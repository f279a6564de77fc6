-- note_fork(label, incarnation, name) -> 1 | 0
-- Notes that the session `name` is made of this one, so that an erasure can name it. 0: this life is over.
-- Keys: meta. Atomic, because an erasure in between must not be followed by a write.
local m = load_state()
if not m or m.inc ~= ARGV[2] then return 0 end
local forks = redis.call('HGET', META, 'forks')
for name in string.gmatch(forks or '', '[^\n]+') do if name == ARGV[3] then return 1 end end
redis.call('HSET', META, 'forks', forks and forks .. '\n' .. ARGV[3] or ARGV[3])
return 1
