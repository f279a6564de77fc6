-- mark_embedded(now, label, incarnation, upto, collection, grace_ms, changes, done…) -> 'marked' | 'gone' | 'changed'
-- Notes that the turns up to `upto` are embedded in `collection`, and which seqs of `redo` and entries of `purge` are
-- done. The due entry goes once nothing is left; else it says when there is something to do.
-- 'gone': this life of the session is over; what was written for it must be undone.
-- 'changed': turns were edited, removed or rewound since the caller saw `changes` ('': does not matter); nothing is noted.
-- Keys: meta, due, and context and next, which are made as small as they can be where they are long. Atomic, because a
-- change or an append in between must not lose its due entry.
local now, label, collection = clock(ARGV[1]), ARGV[2], ARGV[5]
local m = load_state()
if not m or m.inc ~= ARGV[3] then
  redis.call('ZREM', DUE, 'embed:' .. label .. ':' .. ARGV[3])
  return 'gone'
end
if ARGV[7] ~= '' and tonumber(ARGV[7]) ~= m.chg then return 'changed' end

local done, redone_from = {}, math.huge
for i = 8, #ARGV do
  done[ARGV[i]] = true
  redone_from = math.min(redone_from, tonumber(ARGV[i]) or redone_from)
end

-- Words of a field that are not done; they are what the field holds from now on.
local function left(field)
  local kept, count = {}, 0
  for word in string.gmatch(redis.call('HGET', META, field) or '', '%S+') do
    count = count + 1
    if not done[word] then kept[#kept + 1] = word end
  end
  if count == #kept then return kept end
  if #kept == 0 then redis.call('HDEL', META, field) else redis.call('HSET', META, field, table.concat(kept, ' ')) end
  return kept
end
local redo, purges = left('redo'), left('purge')

-- What is redone is so in this collection only: another's mark goes back behind it.
local upto, marks = tonumber(ARGV[4]), {}
for _, mark in ipairs(embedded_marks()) do
  if mark.of == collection then
    upto = math.max(upto, mark.seq)
  else
    mark.seq = math.min(mark.seq, redone_from - 1)
    marks[#marks + 1] = mark
  end
end
table.insert(marks, 1, { seq = upto, of = collection })
save_marks(marks)

local at = nil
if upto < m.head or #redo > 0 then at = now + tonumber(ARGV[6]) end
m.edue = at and 1 or 0
for _, purge in ipairs(purges) do
  -- Before this nobody may call it done. An append moves the entry forward again, because `edue` is 0.
  local ripe = tonumber(string.match(purge, '@(%d+)$')) + ERASE_GRACE_MS
  at = at and math.min(at, ripe) or ripe
end
if at then
  redis.call('ZADD', DUE, string.format('%d', at), 'embed:' .. life(label, m))
else
  redis.call('ZREM', DUE, 'embed:' .. life(label, m))
end
-- Those that would have held the append up.
fit_strings(m, APPEND_FITTED_BYTES - 1, MARK_FITTED_BYTES)
save_state(m)
return 'marked'
