-- KEYS: index of names, record. Removing nothing is a write: a server that was demoted meanwhile refuses it, and
-- does not answer from what it no longer rules.
redis.call('ZREM', KEYS[1], '')
local state, _, values = read(KEYS[2])
return { state, now, values }
