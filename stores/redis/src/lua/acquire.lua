-- KEYS: index of names, record. ARGV: owner, incarnation, attempt, ttl, note, name, channel, purge, prefix of records.
local index, key = KEYS[1], KEYS[2]
local owner, incarnation, attempt, ttl, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local name, channel, purge_ms = ARGV[6], ARGV[7], tonumber(ARGV[8])
local state, r = read(key)
-- What is answered without a write is known only while the server rules. Not asked before a write: that one is refused by
-- itself, and after the question the server no longer looks whether it has room.
local function unchanged(...)
  still_rules(index)
  return { ... }
end
if state == 'unreadable' then return unchanged('unreadable', now, r) end

local began, expires = text_of(now), end_of(ttl)
if r.incarnation == incarnation then
  local same = r.attempt == attempt
  if less(attempt, r.attempt) or (same and state == 'vacant') then return unchanged('superseded', now) end
  if same and state == 'held' then
    redis.call('HSET', key, 'expiresAt', expires, 'ttlMs', ttl, 'lastRenewedAt', began)
    redis.call('ZADD', index, 0, name)
    keep(key, purge_ms, ttl, r.generation)
    return { 'again', now, r.generation, r.terms, r.previousOwner, r.previousGeneration, r.previousEnd, r.previousAt }
  end
elseif state == 'held' then
  return unchanged('held', now, r)
end
if r.generation == MAX then return unchanged('exhausted', now) end

local token, terms, ended, at = began, '1', false, false
if state == 'none' then
  redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'generation', token, 'attempt', attempt,
    'terms', terms, 'ttlMs', ttl, 'createdAt', began, 'acquiredAt', began, 'expiresAt', expires, 'note', note)
  -- Names that were purged leave the index: each new name looks after two others.
  for _, other in ipairs(redis.call('ZRANDMEMBER', index, 2)) do
    if redis.call('EXISTS', ARGV[9] .. other) == 0 then redis.call('ZREM', index, other) end
  end
else
  -- A term that its own holder gave up for a later attempt ends now.
  ended, at = 'released', state == 'vacant' and r.releasedAt or began
  if state == 'expired' then ended, at = 'expired', r.expiresAt end
  terms = r.terms == MAX and MAX or one_more(key, 'terms', r.terms)
  -- The clock is the token's floor.
  if r.generation - now >= 0 then token = one_more(key, 'generation', r.generation) end
  redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'generation', token, 'attempt', attempt,
    'terms', terms, 'ttlMs', ttl, 'acquiredAt', began, 'expiresAt', expires, 'note', note, 'previousOwner', r.owner,
    'previousGeneration', r.generation, 'previousEnd', ended, 'previousAt', at)
  redis.call('HDEL', key, 'lastRenewedAt', 'releasedAt', 'stepDownAskedAt', 'unconfirmed')
  -- Another process may let records be purged; this one's term must not vanish under it.
  if purge_ms == 0 then redis.call('PERSIST', key) end
end
redis.call('ZADD', index, 0, name)
keep(key, purge_ms, ttl, token)
redis.call('PUBLISH', channel, 'taken ' .. token)
return { 'granted', now, token, terms, r.owner, r.generation, ended, at }
