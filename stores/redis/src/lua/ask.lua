-- KEYS: index of names, record. ARGV: token, channel.
local key, token, channel = KEYS[2], ARGV[1], ARGV[2]
local state, r = read(key)
if state == 'unreadable' then
  seldom().still_rules(KEYS[1])
  return { 'unreadable', now, r }
end
-- What a candidate has taken in a member of a quorum still has the token of the term before, whose wish is not its own.
if state ~= 'held' or r.unconfirmed or r.generation ~= token then
  seldom().still_rules(KEYS[1])
  return { 'not held', now }
end
if not r.stepDownAskedAt then
  redis.call('HSET', key, 'stepDownAskedAt', now_text)
  redis.call('PUBLISH', channel, 'asked ' .. token)
else
  seldom().still_rules(KEYS[1])
end
return { 'noted', now }
