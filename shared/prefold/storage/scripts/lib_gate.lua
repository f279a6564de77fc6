-- What all workers know of a provider's key: one hash. All times are ms of the server's clock.
--   request_tat, input_tat   when the rate limits will have been paid off (GCRA)
--   parked, parks, why       the key is of no use until then; how often in a row; the error's code
--   probe                    "id until": the one call that may try a parked key
--   <model>:fails            failures in a row
--   <model>:blocked          no call before this: the provider's rate limit, which each model has of its own
--   <model>:bare             rate limits in a row that did not say for how long
--   <model>:open, :opens, :why, :probe   the same of a model's breaker
local GATE = KEYS[1]

local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function text(name) return redis.call('HGET', GATE, name) or '' end
local function number(name) return tonumber(redis.call('HGET', GATE, name) or 0) end
local function put(name, value) redis.call('HSET', GATE, name, string.format('%d', value)) end

-- Id and end of the probe in a field; '' and 0 without one.
local function probe_of(name)
  local id, ends = string.match(text(name), '^(%S+) (%d+)$')
  return id or '', tonumber(ends or 0)
end
