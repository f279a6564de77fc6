-- forget_waiting(session, after, upto, count, remove) -> { found, next after | '', upto }
-- Looks at `count` entries of an ingest stream behind `after` ('': from the first) for those of a session, and removes
-- them if `remove` is 1. `upto` '': up to the newest one now, which later steps are told, so that what is published
-- meanwhile stays. An empty next: that was all.
-- Keys: ingest. Atomic in each step only: a step must not hold up the server.
local INGEST, session, upto = KEYS[1], ARGV[1], ARGV[3]
if upto == '' then
  local newest = redis.call('XREVRANGE', INGEST, '+', '-', 'COUNT', 1)[1]
  if not newest then return { 0, '', '' } end
  upto = newest[1]
end
local found, after = {}, ''
local seen = redis.call('XRANGE', INGEST, ARGV[2] == '' and '-' or '(' .. ARGV[2], upto, 'COUNT', ARGV[4])
for _, entry in ipairs(seen) do
  after = entry[1]
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'session' and entry[2][i + 1] == session then
      found[#found + 1] = entry[1]
      break
    end
  end
end
if ARGV[5] == '1' and #found > 0 then
  redis.call('XDEL', INGEST, unpack(found))
  if redis.call('XLEN', INGEST) == 0 then redis.call('UNLINK', INGEST) end
end
return { #found, #seen == tonumber(ARGV[4]) and after or '', upto }
