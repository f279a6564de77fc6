-- What changes leave to the embedders. meta's `purge`: ranges whose vectors of another revision than the present one have
-- to go, "first-last@ms"; `redo`: turns below an embedded mark that have a new revision.
local function owe_purge(now, first, last)
  local stored, count = redis.call('HGET', META, 'purge'), 1
  local owed = string.format('%d-%d@%d', first, last, now)
  if stored then
    local least, most = first, last
    for from, to in string.gmatch(stored, '(%d+)-(%d+)@%d+') do
      count, least, most = count + 1, math.min(least, tonumber(from)), math.max(most, tonumber(to))
    end
    owed = count > MOST_PURGES and string.format('%d-%d@%d', least, most, now) or stored .. ' ' .. owed
  end
  redis.call('HSET', META, 'purge', owed)
end

-- How far the session is in each collection, the last marked one first: "12 turns_a_4 40 turns_b_4".
local function embedded_marks()
  local marks = {}
  for seq, name in string.gmatch(redis.call('HGET', META, 'embedded') or '', '(%d+) (%S+)') do
    marks[#marks + 1] = { seq = tonumber(seq), of = name }
  end
  return marks
end

-- Keeps the first MOST_COLLECTIONS of them, none of which claims more than `most` (nil: as they are).
local function save_marks(marks, most)
  local out = {}
  for i = 1, math.min(#marks, MOST_COLLECTIONS) do
    out[i] = math.min(marks[i].seq, most or marks[i].seq) .. ' ' .. marks[i].of
  end
  if #out > 0 then redis.call('HSET', META, 'embedded', table.concat(out, ' ')) end
end

local function owe_redo(first, is_rewind)
  local marks, marked, left = embedded_marks(), 0, {}
  for _, mark in ipairs(marks) do marked = math.max(marked, mark.seq) end
  for seq in string.gmatch(redis.call('HGET', META, 'redo') or '', '%d+') do
    if tonumber(seq) ~= first and not (is_rewind and tonumber(seq) > first) then left[#left + 1] = seq end
  end
  if not is_rewind and first <= marked then left[#left + 1] = tostring(first) end
  if #left > MOST_REDONE then
    -- Too many to name: everything from the first of them on is embedded anew.
    local least = first
    for _, seq in ipairs(left) do least = math.min(least, tonumber(seq)) end
    save_marks(marks, least - 1)
    left = {}
  end
  if #left == 0 then redis.call('HDEL', META, 'redo') else redis.call('HSET', META, 'redo', table.concat(left, ' ')) end
end

-- The turns from `first` to `last` changed: embedders have to look, and a build may be wanted.
local function owe_vectors(m, label, now, first, last, is_rewind)
  local who, wanted = life(label, m), build_wanted(m)
  owe_purge(now, first, last)
  owe_redo(first, is_rewind)
  m.edue = 1
  redis.call('ZADD', DUE, 'LT', now, 'embed:' .. who)
  if wanted then redis.call('ZADD', DUE, 'LT', now, 'compact:' .. who) end
  local build = wanted and m.blease <= now and m.retry <= now
  redis.call('XADD', EVENTS, '*', 'turns', who .. ' ' .. first .. ' ' .. (is_rewind and first - 1 or last)
    .. (build and ' 1' or ' 0'))
end

-- What is known from the turns `first` to `last` has to go, and is taken from what they say now. meta's `forget`:
-- "first-last" a change, one range for all when they are many.
local function owe_memory(m, label, now, first, last)
  local stored = redis.call('HMGET', META, 'forget', 'remembered', 'digest')
  local owed, count, least, most = first .. '-' .. last, 1, first, last
  for from, to in string.gmatch(stored[1] or '', '(%d+)-(%d+)') do
    count, least, most = count + 1, math.min(least, tonumber(from)), math.max(most, tonumber(to))
  end
  if stored[1] then owed = count > MOST_PURGES and least .. '-' .. most or stored[1] .. ' ' .. owed end
  redis.call('HSET', META, 'forget', owed)
  if tonumber(stored[2] or 0) >= first then redis.call('HSET', META, 'remembered', first - 1) end
  if stored[3] and tonumber(string.match(stored[3], '^%d+')) >= first then redis.call('HDEL', META, 'digest', 'closed') end
  remember_by(m, label, now)
end
