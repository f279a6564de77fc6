-- reserve_spending(id, micro_usd, budget, ends_ms) -> {'ok' | 'spent', spent, held}
-- Sets aside what a call may cost, if what was spent and what others have set aside leaves so much of the day's budget
-- ('': no limit). Setting aside the same id again changes nothing.
-- Keys: the tenant's day, a hash: calls, failed, unclear, unpriced, input, cache_read, cache_write, output, micro_usd;
-- held, the sum of all `r:<id>`; budget, as it was last known. It ends `ends_ms` after its last call.
-- Atomic, because calls at the same time must not be given the same money.
local DAY = KEYS[1]
local spent = tonumber(redis.call('HGET', DAY, 'micro_usd') or 0)
local held = tonumber(redis.call('HGET', DAY, 'held') or 0)
local field = 'r:' .. ARGV[1]
if redis.call('HEXISTS', DAY, field) == 1 then return { 'ok', spent, held } end
if ARGV[3] ~= '' and spent + held + tonumber(ARGV[2]) > tonumber(ARGV[3]) then return { 'spent', spent, held } end
redis.call('HSET', DAY, field, ARGV[2], 'budget', ARGV[3])
redis.call('HINCRBY', DAY, 'held', ARGV[2])
redis.call('PEXPIRE', DAY, ARGV[4])
return { 'ok', spent, held }
