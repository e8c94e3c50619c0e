-- KEYS: index of marks. ARGV: least resource with its bracket, limit, what keys of marks and of refusals begin with.
still_rules(KEYS[1])
local found = {}
for _, resource in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])) do
  local state, lease, token, bumped = told_mark(ARGV[3] .. resource)
  local counted = redis.pcall('HMGET', ARGV[4] .. resource, 'count', 'last')
  if counted.err then counted = { false, false } end
  found[#found + 1] = { state, resource, lease, token, bumped, told(counted[1]), told(counted[2]) }
end
return found
