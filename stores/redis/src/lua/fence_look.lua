-- KEYS: index of marks, mark, refusals, record of the lease.
still_rules(KEYS[1])
local state, lease, token, bumped = told_mark(KEYS[2])
local counted = redis.pcall('HMGET', KEYS[3], 'count', 'last')
if counted.err then counted = { false, false } end
local granted = KEYS[4] and redis.pcall('HGET', KEYS[4], 'generation')
if type(granted) ~= 'string' then granted = false end
return { state, now, lease, token, bumped, told(counted[1]), told(counted[2]), told(granted) }
