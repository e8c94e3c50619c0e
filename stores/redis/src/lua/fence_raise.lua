-- KEYS: index of marks, mark. ARGV: resource, lease and token that were found, lease and token to set; empty for none.
local resource, found_lease, found_token, lease, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local state, now_lease, now_token = read_mark(KEYS[2])
if state == 'unreadable' or (now_lease or '') ~= found_lease or (now_token or '') ~= found_token then
  return { 'changed', now }
end
redis.call('HSET', KEYS[2], 'token', token, 'claimedAt', string.format('%.0f', now))
if lease ~= '' then redis.call('HSET', KEYS[2], 'lease', lease) end
if now_token then redis.call('HSET', KEYS[2], 'previous', now_token) end
redis.call('ZADD', KEYS[1], 0, resource)
return { 'raised', now }
