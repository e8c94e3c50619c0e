-- In one member of a quorum: takes the record for a candidate, without a token yet. What is taken blocks others, and is
-- no term until it is confirmed.
-- KEYS: index of names, record, what was removed, what is kept of the quorum. ARGV: owner, incarnation, attempt, ttl, note, name, and
-- which member this is.
-- Answers with whether it was taken just now, was pending already, or was confirmed; the token that the next must be above, and
-- the count of terms before; and the term before.
local index, key, removed = KEYS[1], KEYS[2], KEYS[3]
local owner, incarnation, attempt, ttl, note, name = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
-- The token where no term is known and nothing was removed.
local NONE = '1'
if is_another_member(KEYS[4], ARGV[7]) then return OTHER_MEMBER end
-- Before anything is written.
local function refused(answer)
  seldom().still_rules(index)
  return answer
end
local state, r = read(key, incarnation)
if state == 'unreadable' then return refused({ 'unreadable', now, r }) end
local expires = string.format('%.0f', from + ttl)
if r.incarnation == incarnation then
  local same = r.attempt == attempt
  if #attempt < #r.attempt or (#attempt == #r.attempt and attempt < r.attempt) or (same and state == 'vacant') then
    return refused({ 'superseded', now })
  end
  if same and state == 'held' then
    -- What is confirmed is not extended by asking alone: whoever reaches too few members to be granted anything would keep this one
    -- closed for as long as it asks. With a majority it confirms once more, which extends.
    if r.unconfirmed then redis.call('HSET', key, 'expiresAt', expires, 'ttlMs', ttl) else refused(nil) end
    local first = r.unconfirmed == 'first'
    return (r.unconfirmed and 'pending ' or 'again ') .. now_text .. ' ' .. (r.generation ~= NONE and r.generation or '0')
      .. ' ' .. (first and '0' or r.terms) .. (r.previousEnd
      and ' ' .. r.previousGeneration .. ' ' .. r.previousEnd .. ' ' .. r.previousAt .. ' ' .. r.previousOwner or '')
  end
elseif state == 'held' then
  return refused({ 'held', now, r })
end
if r.generation and r.generation - TOKEN_MAX == 0 then return refused({ 'exhausted', now }) end

local previous, generation, ended, at = r.previousOwner, r.previousGeneration, r.previousEnd, r.previousAt
local first = state == 'none' or r.unconfirmed == 'first'
local token = r.generation
if state == 'none' then
  token = seldom().highest_removed(removed)
  redis.call('HSET', key, 'generation', token, 'terms', '1', 'createdAt', now_text)
elseif not r.unconfirmed then
  previous, generation = r.owner, r.generation
  ended, at = 'released', state == 'vacant' and r.releasedAt or now_text
  if state == 'expired' then ended, at = 'expired', r.expiresAt end
end
local unconfirmed = first and 'first' or 'later'
if ended then
  redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'attempt', attempt, 'ttlMs', ttl, 'acquiredAt', now_text,
    'expiresAt', expires, 'note', note, 'unconfirmed', unconfirmed, 'previousOwner', previous, 'previousGeneration', generation,
    'previousEnd', ended, 'previousAt', at)
else
  redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'attempt', attempt, 'ttlMs', ttl, 'acquiredAt', now_text,
    'expiresAt', expires, 'note', note, 'unconfirmed', unconfirmed)
end
if r.lastRenewedAt or r.stepDownAskedAt then
  redis.call('HDEL', key, 'lastRenewedAt', 'releasedAt', 'stepDownAskedAt')
elseif r.releasedAt then
  redis.call('HDEL', key, 'releasedAt')
end
-- Its last release may have left a time after which it is purged, which must not come in this term; renewals set one anew.
redis.call('PERSIST', key)
redis.call('ZADD', index, 0, name)
return 'taken ' .. now_text .. ' ' .. (token ~= NONE and token or '0') .. ' ' .. (first and '0' or r.terms)
  .. (ended and ' ' .. generation .. ' ' .. ended .. ' ' .. at .. ' ' .. previous or '')
