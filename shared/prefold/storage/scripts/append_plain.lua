-- The common append, served before anything else is set up: one new plain turn, no call open, not degraded, and room
-- for it. Whatever differs falls through to append.lua, which handles every case and gives the same result where both
-- apply (a property test holds the two together). v[@name] is the state's number of that name (fields.py).
do
  local call, tag = redis.call, ARGV[10]
  local packed = ARGV[7] == '1' and string.sub(tag, 1, 1) == 'p' and ARGV[16] == '0'
    and call('HGET', KEYS[1], 'state')
  if packed and #packed == $CLOSED_SIZE then
    local v = { struct.unpack($READ_FORMAT, packed) }
    local tokens, floor, now = tonumber(ARGV[12]), math.floor, tonumber(ARGV[1]) or tonumber(string.sub(ARGV[1], 2))
    local room, tok = floor(v[@hard] * 1000 / v[@cal]) - v[@fix], v[@tok] + tokens
    if v[@leads] == 0 and v[@deg] == 0 and tok <= room and now + ARGV[5] - v[@ends] < $DAY_MS
      and v[@bytes] + #ARGV[14] + 100 <= $MOST_BYTES and v[@nbytes] + #ARGV[14] + 100 <= $MOST_BYTES then
      local seq = v[@head] + 1
      local at = tostring(seq)
      if call('HSETNX', KEYS[4], 't:' .. ARGV[8], at .. ' ' .. ARGV[9]) == 1 then
        local content, short, log = ARGV[14], ARGV[15], v[@log] + tokens
        local rest = string.sub(packed, $WRITTEN_END)
        local inc = string.sub(rest, -$INC)
        local flow, lead = v[@flow] * math.exp(-math.max(0, now - v[@updated]) / $PACE_MS) + tokens * 100, string.match(ARGV[4], '%d+$')
        v[@head], v[@log], v[@tok], v[@full], v[@updated], v[@spoken] = seq, log, tok, v[@full] + tokens, now, now
        v[@flow], v[@lead] = floor(flow), tonumber(lead)
        if v[@adapt] == 1 then
          local span = $PACE_MS * (1 - math.exp(-math.max($PACE_LEAST_MS, now - v[@created]) / $PACE_MS))
          local needed = v[@flow] / 100 / span * v[@lead] * $LEAD_FACTOR
          v[@ratio] = math.max($LEAST_RATIO, math.min($MOST_RATIO, floor(1000 - needed * 1000 / room)))
        end
        local said, cut = '{"role":"assistant","seq":', ' 0 1 '
        if string.sub(tag, 3, 3) == 'u' then
          said, cut = '{"role":"user","seq":', ' 0 2 '
          v[@lu], v[@lucum], v[@luver] = seq, log, v[@ver]
          if v[@fu] == 0 then v[@fu] = seq end
        end
        local record = ARGV[12] .. ' ' .. ARGV[13] .. ' ' .. log .. cut .. tag .. ' 0 ' .. ARGV[8] .. '\n' .. ARGV[11]
        if short == '' then
          call('XADD', KEYS[3], at .. '-0', 'r', record, 'c', content)
        else
          call('XADD', KEYS[3], at .. '-0', 'r', record, 'c', content, 's', short)
        end
        local line = said .. at .. ',"tokens":' .. ARGV[12] .. ',"content":[' .. content .. ']}\n'
        call('APPEND', KEYS[5], line)
        v[@bytes] = v[@bytes] + #line
        local status, wanted = 0, false
        if tok >= floor(room * v[@ratio] / 1000) then status, wanted = 1, true end
        if v[@nx] > 0 then
          call('APPEND', KEYS[6], line)
          v[@ntok], v[@nbytes] = v[@ntok] + tokens, v[@nbytes] + #line
          wanted = wanted and v[@ntok] - v[@n0] >= floor(room * $REFRESH_STEP)
        end
        for i = 5, 6 do -- as fit_strings (lib_state) does it
          local size = i == 5 and v[@bytes] or v[@nbytes]
          if size > 0 and size < $APPEND_FITTED_BYTES and type(redis.pcall('BITOP', 'OR', KEYS[i], KEYS[i])) == 'number' then
            call('PEXPIREAT', KEYS[i], v[@ends])
          end
        end
        if wanted and v[@rest] > log then wanted = false end
        if v[@fresh] == 1 then status, v[@fresh] = 2, 0 end
        local life, build = ARGV[3] .. ':' .. inc, ' 0'
        if v[@edue] == 0 then
          v[@edue] = 1
          call('ZADD', KEYS[10], 'LT', now + ARGV[6], 'embed:' .. life)
        end
        if v[@mdue] == 0 and v[@idle] > 0 then
          v[@mdue] = 1
          call('ZADD', KEYS[10], 'LT', now + v[@idle], 'remember:' .. life)
        end
        if wanted then
          if v[@want] == 0 then v[@want] = now end
          call('ZADD', KEYS[10], 'LT', now + ARGV[6], 'compact:' .. life)
          if v[@blease] <= now and v[@retry] <= now then build = ' 1' end
        end
        call('XADD', KEYS[9], '*', 'turns', life .. ' ' .. at .. ' ' .. at .. build)
        if now % $TRIM_EVERY == 0 then call('XTRIM', KEYS[9], 'MAXLEN', '~', $EVENTS_KEPT) end
        call('HSET', KEYS[1], 'state', struct.pack($WRITTEN_FORMAT, unpack(v, 1, $WRITTEN_COUNT)) .. rest)
        local cal, ceil = v[@cal], math.ceil
        return inc .. struct.pack($REPLY_FORMAT, v[@ver], v[@swaps], ceil((tok + v[@fix]) * cal / 1000),
          ceil((tok - v[@htok]) * cal / 1000), v[@hard], status, 0, seq, ceil(tokens * cal / 1000), 0)
      end
    end
  end
end
