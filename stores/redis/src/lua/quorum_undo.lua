-- In one member of a quorum: lets go of what was taken and never confirmed, so that it holds nobody up.
-- KEYS: index of names, record. ARGV: incarnation, attempt.
local state, r = read(KEYS[2], ARGV[1])
if state == 'held' and r.unconfirmed and r.incarnation == ARGV[1] and r.attempt == ARGV[2] then
  redis.call('HSET', KEYS[2], 'expiresAt', now_text)
end
return { 'undone', now }
