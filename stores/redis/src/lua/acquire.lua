-- KEYS: index of names, record. ARGV: owner, incarnation, attempt, ttl, note, name, channel, purge, prefix of records.
local index, key = KEYS[1], KEYS[2]
local owner, incarnation, attempt, ttl, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local name, channel, purge_ms, prefix = ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9]
local state, r, values = read(key)
-- What is answered without a write is known only while the server rules. Not asked before a write: that one is refused by
-- itself, and after the question the server no longer looks whether it has room.
local function unchanged(...)
  still_rules(index)
  return { ... }
end
if state == 'unreadable' then return unchanged('unreadable', now, values) end

local expires = end_of(ttl)
if r and r.incarnation == incarnation then
  local same = r.attempt == attempt
  if less(attempt, r.attempt) or (same and state == 'vacant') then return unchanged('superseded', now) end
  if same and state == 'held' then
    redis.call('HSET', key, 'expiresAt', expires, 'ttlMs', ttl, 'lastRenewedAt', text_of(now))
    redis.call('ZADD', index, 0, name)
    keep(key, purge_ms, tonumber(ttl), r.generation)
    return { 'again', now, r.generation, r.terms, r.previousOwner, r.previousGeneration, r.previousEnd, r.previousAt }
  end
elseif state == 'held' then
  return unchanged('held', now, values)
end
if r and r.generation == MAX then return unchanged('exhausted', now) end

local previous = { false, false, false, false }
if r then
  -- A term that its own holder gave up for a later attempt ends now.
  local at = state == 'vacant' and r.releasedAt or text_of(math.min(tonumber(r.expiresAt), now))
  previous = { r.owner, r.generation, state == 'expired' and 'expired' or 'released', at }
end
local terms, token = '1', text_of(now)
if r then
  -- Counting is left to the server, whose numbers have 64 bits; the clock is the token's floor.
  if r.terms ~= MAX then redis.call('HINCRBY', key, 'terms', 1) end
  terms = redis.call('HGET', key, 'terms')
  if tonumber(r.generation) >= now then
    redis.call('HINCRBY', key, 'generation', 1)
    token = redis.call('HGET', key, 'generation')
  end
end
redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'generation', token, 'attempt', attempt,
  'terms', terms, 'ttlMs', ttl, 'createdAt', r and r.createdAt or text_of(now), 'acquiredAt', text_of(now),
  'expiresAt', expires, 'note', note)
if r then
  redis.call('HDEL', key, 'lastRenewedAt', 'releasedAt', 'stepDownAskedAt', 'unconfirmed')
  redis.call('HSET', key, 'previousOwner', previous[1], 'previousGeneration', previous[2],
    'previousEnd', previous[3], 'previousAt', previous[4])
  -- Another process may let records be purged; this one's term must not vanish under it.
  if purge_ms == 0 then redis.call('PERSIST', key) end
else
  -- Names that were purged leave the index: each new name looks after two others.
  for _, other in ipairs(redis.call('ZRANDMEMBER', index, 2)) do
    if redis.call('EXISTS', prefix .. other) == 0 then redis.call('ZREM', index, other) end
  end
end
redis.call('ZADD', index, 0, name)
keep(key, purge_ms, tonumber(ttl), token)
redis.call('PUBLISH', channel, 'taken ' .. token)
return { 'granted', now, token, terms, previous[1], previous[2], previous[3], previous[4] }
