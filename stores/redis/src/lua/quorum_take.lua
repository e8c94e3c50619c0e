-- In one member of a quorum: takes the record for a candidate, without a token yet. What is taken blocks others, and is
-- no term until it is confirmed.
-- KEYS: index of names, record. ARGV: owner, incarnation, attempt, ttl, note, name.
-- Answers with the token and the count of terms before, whether the same attempt had been confirmed, and the term before.
local index, key = KEYS[1], KEYS[2]
local owner, incarnation, attempt, ttl, note, name = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local state, r, values = read(key)
if state == 'unreadable' then return { 'unreadable', now, values } end
local expires = end_of(ttl)
if r and r.incarnation == incarnation then
  local same = r.attempt == attempt
  if less(attempt, r.attempt) or (same and state == 'vacant') then return { 'superseded', now } end
  if same and state == 'held' then
    redis.call('HSET', key, 'expiresAt', expires, 'ttlMs', ttl)
    local verdict = r.unconfirmed and 'pending' or 'again'
    if verdict == 'again' then redis.call('HSET', key, 'lastRenewedAt', text_of(now)) end
    local first = r.unconfirmed == 'first'
    return { verdict, now, first and '0' or r.generation, first and '0' or r.terms, r.previousOwner, r.previousGeneration,
      r.previousEnd, r.previousAt }
  end
elseif state == 'held' then
  return { 'held', now, values }
end
if r and r.generation == MAX then return { 'exhausted', now } end

local first = not r or r.unconfirmed == 'first'
local previous = { false, false, false, false }
if r and r.unconfirmed then
  previous = { r.previousOwner, r.previousGeneration, r.previousEnd, r.previousAt }
elseif r then
  local at = state == 'vacant' and r.releasedAt or text_of(math.min(tonumber(r.expiresAt), now))
  previous = { r.owner, r.generation, state == 'expired' and 'expired' or 'released', at }
end
redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'generation', r and r.generation or '1',
  'attempt', attempt, 'terms', r and r.terms or '1', 'ttlMs', ttl, 'createdAt', r and r.createdAt or text_of(now),
  'acquiredAt', text_of(now), 'expiresAt', expires, 'note', note, 'unconfirmed', first and 'first' or 'later')
redis.call('HDEL', key, 'lastRenewedAt', 'releasedAt', 'stepDownAskedAt')
if previous[1] then
  redis.call('HSET', key, 'previousOwner', previous[1], 'previousGeneration', previous[2], 'previousEnd', previous[3],
    'previousAt', previous[4])
end
-- Its last release may have left a time after which it is purged, which must not come in this term; renewals set one anew.
redis.call('PERSIST', key)
redis.call('ZADD', index, 0, name)
return { 'pending', now, first and '0' or r.generation, first and '0' or r.terms, previous[1], previous[2], previous[3],
  previous[4] }
