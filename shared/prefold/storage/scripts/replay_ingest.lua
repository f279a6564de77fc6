-- replay_ingest(letter) -> id of the new entry | 'gone' | 'no_text'
-- Puts the entry of a dead letter at the end of the stream again, as it was published.
-- Keys: ingest, ingest_dead, ingest_dead_why, ingest_dead_text. Atomic, because an erasure must find the words in one of
-- both places.
local name = ARGV[1]
if not redis.call('ZSCORE', DEAD, name) then return 'gone' end
local text = redis.call('HGET', TEXT, name)
if not text then return 'no_text' end
local at = string.find(text, '\n', 1, true)
local parts = {}
for size in string.gmatch(string.sub(text, 1, at - 1), '%d+') do
  parts[#parts + 1] = string.sub(text, at + 1, at + size)
  at = at + size
end
local id = redis.call('XADD', INGEST, '*', unpack(parts))
remove_letter(name)
return id
