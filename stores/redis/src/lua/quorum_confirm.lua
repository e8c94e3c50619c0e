-- In one member of a quorum: gives what was taken its token. A member confirms one token for an attempt, and no other.
-- KEYS: index of names, record, what is kept of the quorum. ARGV: incarnation, attempt, token, count of terms, ttl, channel, the token
-- of the term before, if this one was guessed from it, else 0, how far a guess may be behind the clock, and which member this is.
local key, incarnation, attempt, token, terms, ttl, channel, follows, lag = KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6],
  ARGV[7], ARGV[8]
if is_another_member(KEYS[3], ARGV[9]) then return OTHER_MEMBER end
local state, r = read(key, incarnation)
if state == 'unreadable' then return 'unreadable' end
if state ~= 'held' or r.incarnation ~= incarnation or r.attempt ~= attempt then return 'gone' end
local expires = string.format('%.0f', from + ttl)
if not r.unconfirmed then
  -- Who asks again counts from when it did. This alone extends it, as a renewal does: none confirms again before a majority is taken.
  redis.call('HSET', key, 'expiresAt', expires, 'ttlMs', ttl, 'lastRenewedAt', now_text)
  return 'already ' .. r.generation .. ' ' .. r.terms
end
-- Who guesses has not seen the clocks, and may have stood still meanwhile: it counts on this member, which knows the time, and that there
-- was no term between.
if follows ~= '0' and (r.generation ~= follows or token + lag < now) then return 'gone' end
-- Above the term before, or above whatever was removed here.
if #r.generation > #token or (#r.generation == #token and r.generation >= token) then return 'gone' end
-- Who asks may not have heard of all terms before, or this member may not have.
if r.unconfirmed == 'later' and (#r.terms > #terms or #r.terms == #terms and r.terms >= terms) then
  terms = r.terms == MAX and MAX or seldom().one_more(key, 'terms')
end
redis.call('HSET', key, 'generation', token, 'terms', terms, 'expiresAt', expires)
-- A wish that stands there was for the term before.
if r.stepDownAskedAt then
  redis.call('HDEL', key, 'unconfirmed', 'stepDownAskedAt')
else
  redis.call('HDEL', key, 'unconfirmed')
end
redis.call('PUBLISH', channel, 'taken ' .. token)
return 'confirmed ' .. token .. ' ' .. terms
