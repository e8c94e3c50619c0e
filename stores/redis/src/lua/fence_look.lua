-- KEYS: index of marks, mark, refusals, record of the lease. Removing nothing is a write: a server that was demoted
-- meanwhile refuses it.
redis.call('ZREM', KEYS[1], '')
local state, lease, token = read_mark(KEYS[2])
local counted = redis.pcall('HMGET', KEYS[3], 'count', 'last')
if counted.err then counted = { false, false } end
local granted = KEYS[4] and redis.pcall('HGET', KEYS[4], 'generation')
if type(granted) ~= 'string' then granted = false end
return { state, now, lease, token, counted[1], counted[2], granted }
