-- note_call(now, model, id, signal, why, wait_ms, is_bare, refund_tokens, input_tokens_per_minute, fails_to_open,
--   open_ms, most_open_ms, park_ms, most_park_ms, jitter, ends_ms) -> {event, fails, left_ms}
-- What a call told of its key and model. signal: 'well', 'busy' (wait_ms: what the provider asked for, or with is_bare
-- what we thought of), 'trouble', 'useless_model', 'parked' (why), 'none' (nothing was learnt). `jitter`: thousandths.
-- event: '', 'opened', 'closed', 'parked', 'released': to be told once. fails: in a row. left_ms: until calls may go on.
-- Only the probe opens what is shut: an answer to a call that began before says nothing of now.
-- Keys: gate. Sent again, a failure counts twice. Atomic, because counts of all workers meet here.
local now, model, id, signal, why = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local wait = tonumber(ARGV[6])
local event = ''

local function is_probe(name) return probe_of(name) == id end

-- Longer each time, and not the same for all.
local function pause(times, least, most)
  return math.floor(math.min(least * 2 ^ math.min(times, 20), most) * (1 - tonumber(ARGV[15]) / 4000))
end

local key_probe, model_probe = is_probe('probe'), is_probe(model .. ':probe')
local fails = number(model .. ':fails')

local function release_key()
  redis.call('HDEL', GATE, 'parked', 'parks', 'why', 'probe')
  event = 'released'
end

local function park(code)
  local parks = number('parks')
  redis.call('HSET', GATE, 'why', code)
  put('parked', now + pause(parks, tonumber(ARGV[13]), tonumber(ARGV[14])))
  put('parks', parks + 1)
  redis.call('HDEL', GATE, 'probe')
  event = 'parked'
end

local function open_breaker(code, least, most)
  local opens = number(model .. ':opens')
  redis.call('HSET', GATE, model .. ':why', code)
  put(model .. ':open', now + pause(opens, least, most))
  put(model .. ':opens', opens + 1)
  redis.call('HDEL', GATE, model .. ':probe')
  event = 'opened'
end

local function close_breaker()
  redis.call('HDEL', GATE, model .. ':open', model .. ':opens', model .. ':why', model .. ':probe')
  event = 'closed'
end

local function block() put(model .. ':blocked', math.max(number(model .. ':blocked'), now + wait)) end

local tokens_per_minute, refund = tonumber(ARGV[9]), tonumber(ARGV[8])
if tokens_per_minute > 0 and refund ~= 0 then
  put('input_tat', number('input_tat') - refund * 60000 / tokens_per_minute)
end

if signal == 'well' then
  redis.call('HDEL', GATE, model .. ':fails', model .. ':bare')
  fails = 0
  if model_probe then close_breaker() end
  if key_probe then release_key() end
elseif signal == 'busy' then
  local bare, is_bare, was_blocked = model .. ':bare', ARGV[7] == '1', number(model .. ':blocked') > now
  if is_bare and not was_blocked then put(bare, number(bare) + 1) end
  if not is_bare then redis.call('HDEL', GATE, bare) end
  if key_probe then release_key() end
  if number(bare) < 2 then
    if model_probe then close_breaker() end
  elseif model_probe or number(model .. ':open') == 0 then
    -- Waiting did not help, and nobody says how long to wait: so spend limits look. What limits the key as a whole
    -- shows at each of its models.
    open_breaker(why, tonumber(ARGV[13]), tonumber(ARGV[14]))
  end
  block()
elseif signal == 'trouble' then
  fails = fails + 1
  put(model .. ':fails', fails)
  if wait > 0 then block() end
  local is_shut = number(model .. ':open') > 0
  if model_probe or (not is_shut and fails >= tonumber(ARGV[10])) then
    open_breaker(why, tonumber(ARGV[11]), tonumber(ARGV[12]))
  end
  if key_probe then
    put('parked', now + tonumber(ARGV[11]))
    redis.call('HDEL', GATE, 'probe')
  end
elseif signal == 'useless_model' then
  if key_probe then release_key() end
  if model_probe or number(model .. ':open') == 0 then
    open_breaker(why, tonumber(ARGV[13]), tonumber(ARGV[14]))
  end
elseif signal == 'parked' then
  if key_probe or number('parked') == 0 then park(why) end
  if model_probe then redis.call('HDEL', GATE, model .. ':probe') end
else
  if key_probe then redis.call('HDEL', GATE, 'probe') end
  if model_probe then redis.call('HDEL', GATE, model .. ':probe') end
end
redis.call('PEXPIRE', GATE, ARGV[16])
local left = math.max(number(model .. ':blocked'), number(model .. ':open'), number('parked')) - now
return { event, fails, math.max(0, left) }
