-- KEYS: index of names, record. ARGV: owner, incarnation, attempt, ttl, note, name, channel, purge, prefix of records.
local index, key = KEYS[1], KEYS[2]
local owner, incarnation, attempt, ttl, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local name, channel, purge_ms = ARGV[6], ARGV[7], ARGV[8]
local state, r = read(key, incarnation)
local expires = string.format('%.0f', from + ttl)
local refusal
if state == 'unreadable' then
  refusal = { 'unreadable', now, r }
elseif r.incarnation == incarnation then
  local same = r.attempt == attempt
  if same and state == 'held' then
    redis.call('HSET', key, 'expiresAt', expires, 'ttlMs', ttl, 'lastRenewedAt', now_text)
    redis.call('ZADD', index, 0, name)
    if purge_ms ~= '0' then seldom().keep(key, purge_ms, ttl, r.generation) end
    return 'again ' .. now_text .. ' ' .. r.generation .. ' ' .. r.terms .. (r.previousEnd
      and ' ' .. r.previousGeneration .. ' ' .. r.previousEnd .. ' ' .. r.previousAt .. ' ' .. r.previousOwner or '')
  end
  -- Less than the record's attempt, or its own, which is over.
  if #attempt < #r.attempt or (#attempt == #r.attempt and attempt < r.attempt) or (same and state == 'vacant') then
    refusal = { 'superseded', now }
  end
elseif state == 'held' then
  refusal = { 'held', now, r }
end
-- What is granted here alone would be granted by the others, too. Not a key of the user's own, nor one that a slot's move has taken.
if not refusal then
  local members = redis.pcall('HGET', string.match(index, '^{[^}]*}') .. ':quorum', 'members')
  if type(members) == 'string' and string.find(members, '^%x+=') then refusal = { 'member', now, members } end
end
if not refusal and r.generation and r.generation - TOKEN_MAX == 0 then refusal = { 'exhausted', now } end
if refusal then
  -- What is answered without a write is known only while the server rules. Not asked before a write: that one is refused by
  -- itself, and after the question the server no longer looks whether it has room.
  seldom().still_rules(index)
  return refusal
end

local token, terms, ended, at = now_text, '1', false, false
if state == 'none' then
  redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'generation', token, 'attempt', attempt,
    'terms', terms, 'ttlMs', ttl, 'createdAt', now_text, 'acquiredAt', now_text, 'expiresAt', expires, 'note', note)
  -- Names that were purged leave the index: each new name looks after two others.
  for _, other in ipairs(redis.call('ZRANDMEMBER', index, 2)) do
    if redis.call('EXISTS', ARGV[9] .. other) == 0 then redis.call('ZREM', index, other) end
  end
else
  -- A term that its own holder gave up for a later attempt ends now.
  ended, at = 'released', r.releasedAt or now_text
  if state == 'expired' then ended, at = 'expired', r.expiresAt end
  -- Lua's numbers count up to 2^53.
  terms = #r.terms < 16 and string.format('%.0f', r.terms + 1) or r.terms == MAX and MAX or seldom().one_more(key, 'terms')
  -- The clock is the token's floor.
  if r.generation - now >= 0 then token = string.format('%.0f', r.generation + 1) end
  redis.call('HSET', key, 'owner', owner, 'incarnation', incarnation, 'generation', token, 'attempt', attempt,
    'terms', terms, 'ttlMs', ttl, 'acquiredAt', now_text, 'expiresAt', expires, 'note', note, 'previousOwner', r.owner,
    'previousGeneration', r.generation, 'previousEnd', ended, 'previousAt', at)
  if r.lastRenewedAt or r.stepDownAskedAt or r.unconfirmed then
    redis.call('HDEL', key, 'lastRenewedAt', 'releasedAt', 'stepDownAskedAt', 'unconfirmed')
  elseif r.releasedAt then
    redis.call('HDEL', key, 'releasedAt')
  end
  -- Another process may let records be purged; this one's term must not vanish under it.
  if purge_ms == '0' then redis.call('PERSIST', key) end
end
redis.call('ZADD', index, 0, name)
if purge_ms ~= '0' then seldom().keep(key, purge_ms, ttl, token) end
redis.call('PUBLISH', channel, 'taken ' .. token)
return 'granted ' .. now_text .. ' ' .. token .. ' ' .. terms
  .. (ended and ' ' .. r.generation .. ' ' .. ended .. ' ' .. at .. ' ' .. r.owner or '')
