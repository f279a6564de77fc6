#!lua flags=allow-oom
-- mark(ends_in_ms): a write of its own that changes nothing. WAIT after it speaks of everything written before.
redis.call('SET', KEYS[1], '', 'PX', ARGV[1])
