-- KEYS: index of marks, mark. ARGV: resource; lease, token and bumped that were found; those to set; empty for none.
local resource, found_lease, found_token, found_bumped = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lease, token, bumped = ARGV[5], ARGV[6], ARGV[7]
local state, now_lease, now_token, now_bumped = read_mark(KEYS[2])
if state == 'unreadable' or (now_lease or '') ~= found_lease or (now_token or '') ~= found_token
  or (now_bumped or '') ~= found_bumped then
  return { 'changed', now }
end
redis.call('HSET', KEYS[2], 'token', token, 'claimedAt', string.format('%.0f', now))
if lease ~= '' then redis.call('HSET', KEYS[2], 'lease', lease) end
if now_token then redis.call('HSET', KEYS[2], 'previous', now_token) end
if bumped ~= '' then
  redis.call('HSET', KEYS[2], 'bumped', bumped)
elseif now_bumped then
  redis.call('HDEL', KEYS[2], 'bumped')
end
redis.call('ZADD', KEYS[1], 0, resource)
return { 'raised', now }
