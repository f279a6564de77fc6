-- admit_call(now, model, id, input_tokens, requests_per_minute, input_tokens_per_minute, most_wait_ms, probe_ms, ends_ms)
--   -> {'go', wait_ms, 'key' | 'model' | ''} | {'busy', wait_ms, ''} | {'open' | 'parked', wait_ms, why}
-- 'go': the call may begin in wait_ms, which are at most most_wait_ms; its share of the rate limits is taken. The third
-- value says what it is the one probe of. 'busy': come back then. A limit of 0 is none.
-- Rate limits are a virtual scheduling bucket of one minute (GCRA, ITU-T I.371): one number each, no queue.
-- Keys: gate (lib_gate), ends `ends_ms` after its last use. Sent again it takes another share, which costs time only.
-- Atomic, because two workers must not both be the probe, nor take the same share.
local now, model, id = clock(ARGV[1]), ARGV[2], ARGV[3]
local most_wait, probe_ends = tonumber(ARGV[7]), now + tonumber(ARGV[8])

-- What keeps this call out, by the fields of a parked key or an open breaker: nil, or verdict and wait.
local function kept_out(verdict, until_name, probe_name, why)
  local ends = number(until_name)
  if ends == 0 then return nil end
  local probe, probe_until = probe_of(probe_name)
  if now < ends then return { verdict, ends - now, why } end
  if probe ~= '' and probe ~= id and now < probe_until then return { verdict, math.min(probe_until - now, 5000), why } end
  return nil
end

local kept = kept_out('parked', 'parked', 'probe', text('why'))
  or kept_out('open', model .. ':open', model .. ':probe', text(model .. ':why'))
if kept then return kept end

-- New scheduling time of a bucket, and how long the call has to wait for its share.
local function share(name, per_minute, cost)
  if per_minute == 0 then return nil, 0 end
  local before = math.max(number(name), now)
  local after = before + cost * 60000 / per_minute
  -- A call larger than the bucket goes when the bucket is full, and the others wait for it.
  return after, math.max(0, math.min(after - 60000, before) - now)
end

local requests, wait_requests = share('request_tat', tonumber(ARGV[5]), 1)
local input, wait_input = share('input_tat', tonumber(ARGV[6]), tonumber(ARGV[4]))
local wait = math.ceil(math.max(wait_requests, wait_input, number(model .. ':blocked') - now, 0))
if wait > most_wait then return { 'busy', wait, '' } end
if requests then put('request_tat', requests) end
if input then put('input_tat', input) end
local of = ''
if number(model .. ':open') > 0 then
  of = 'model'
  redis.call('HSET', GATE, model .. ':probe', string.format('%s %d', id, probe_ends))
end
if number('parked') > 0 then
  of = 'key'
  redis.call('HSET', GATE, 'probe', string.format('%s %d', id, probe_ends))
end
redis.call('PEXPIRE', GATE, ARGV[9])
return { 'go', wait, of }
