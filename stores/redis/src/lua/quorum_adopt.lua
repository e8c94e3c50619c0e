-- In one member of a quorum: takes in terms that a majority has just extended, and that this member has missed.
--
-- It is what the attempt's own take and confirmation do that come this late, in one step, and stands by their rules: what is held
-- is left alone, tokens only rise here, and a term that was given back, or that a later attempt has followed, does not come back.
-- So it only ever takes a free member from rivals. The one thing that those two do not do is to go on with the very term that ran
-- out here: it is the last one that this member knows, so nobody was granted this member since.
-- KEYS: index of names, what was removed, what is kept of the quorum, records. ARGV: which member this is, and of each: incarnation, token, attempt, ttl, name, and what
-- another member tells of it: owner, terms, note, how long ago it was created and acquired, and the owner, token, end and time of
-- the term before.
local PARTS = 14
local less, text_of = seldom().less, seldom().text_of

local function is_free(state, r, incarnation, token, attempt)
  if state == 'none' then return less(seldom().highest_removed(KEYS[2]), token) end
  -- Taken by this very attempt, which was confirmed elsewhere: this is the confirmation, by its own conditions.
  if state == 'held' and r.unconfirmed and r.incarnation == incarnation and r.attempt == attempt then
    return less(r.generation, token)
  end
  if state ~= 'vacant' and state ~= 'expired' then return false end
  -- A candidate has only looked, and let go: what it found here is this term, which had run out.
  if state == 'expired' and r.unconfirmed == 'later' and r.incarnation ~= incarnation and r.generation == token
    and r.previousGeneration == token and r.previousEnd == 'expired' then
    return true
  end
  if r.incarnation == incarnation then
    if less(attempt, r.attempt) then return false end
    if attempt == r.attempt then
      if state == 'vacant' then return false end
      -- A member confirms one token for an attempt, and no other.
      if not r.unconfirmed then return r.generation == token end
    end
  end
  return less(r.generation, token)
end

local function at(ago)
  return text_of(math.max(now - tonumber(ago), 0))
end

if is_another_member(KEYS[3], ARGV[1]) then return OTHER_MEMBER end
for place = 4, #KEYS do
  local key, first = KEYS[place], PARTS * (place - 4) + 1
  local term = {}
  for part = 1, PARTS do term[part] = ARGV[first + part] end
  local incarnation, token, attempt, ttl, name, owner, terms, note, created, acquired = unpack(term)
  local state, r = read(key, incarnation)
  if is_free(state, r, incarnation, token, attempt) then
    redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'generation', token, 'attempt', attempt,
      'terms', terms, 'ttlMs', ttl, 'createdAt', r.createdAt or at(created), 'acquiredAt', at(acquired),
      'lastRenewedAt', now_text, 'expiresAt', text_of(from + ttl), 'note', note)
    redis.call('HDEL', key, 'unconfirmed', 'releasedAt', 'stepDownAskedAt')
    if term[13] ~= '' then
      redis.call('HSET', key, 'previousOwner', term[11], 'previousGeneration', term[12], 'previousEnd', term[13],
        'previousAt', at(term[14]))
    else
      redis.call('HDEL', key, 'previousOwner', 'previousGeneration', 'previousEnd', 'previousAt')
    end
    redis.call('ZADD', KEYS[1], 0, name)
    redis.call('PERSIST', key)
  end
end
return { 'adopted', now }
