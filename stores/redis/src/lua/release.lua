-- KEYS: index of names, records. ARGV: purge, then incarnation, token, attempt and channel of each.
local purge_ms, answers, unchanged = ARGV[1], {}, false
for place = 2, #KEYS do
  local key, first = KEYS[place], 4 * (place - 2) + 2
  local incarnation, token, attempt = ARGV[first], ARGV[first + 1], ARGV[first + 2]
  local state, r = read(key, incarnation)
  local answer
  -- Told also where nothing of it is, or is left, or the term before is the last that is known: a watch of a quorum counts who
  -- tells, and these are of those that make it free.
  local tells = state == 'none'
  if state == 'none' or state == 'unreadable' then
    answer, unchanged = { state, now, r }, true
  elseif r.incarnation ~= incarnation or r.attempt ~= attempt or (r.generation ~= token and not r.unconfirmed) then
    answer, unchanged = { 'lost', now, r }, true
    tells = state ~= 'held' and (#r.generation < #token or #r.generation == #token and r.generation <= token)
  else
    answer, tells = 'vacated', true
    if r.generation == token and state == 'vacant' then
      unchanged = true
    else
      redis.call('HSET', key, 'releasedAt', now_text, 'expiresAt', r.expiresAt - now > 0 and now_text or r.expiresAt)
      -- A member of a quorum that missed the confirmation: here it was no term, holds nobody up any longer, and becomes none.
      if r.generation == token then
        if r.stepDownAskedAt then redis.call('HDEL', key, 'stepDownAskedAt') end
        if purge_ms ~= '0' then seldom().keep(key, purge_ms, r.ttlMs, token) end
      end
    end
  end
  if tells then redis.call('PUBLISH', ARGV[first + 3], 'vacated ' .. token) end
  answers[place - 1] = answer
end
-- After the writes: once asked, the server no longer looks whether it has room for them.
if unchanged then seldom().still_rules(KEYS[1]) end
return answers
