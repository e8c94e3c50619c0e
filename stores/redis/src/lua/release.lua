-- KEYS: index of names, records. ARGV: purge, then incarnation, token, attempt and channel of each.
local purge_ms, answers, unchanged = tonumber(ARGV[1]), {}, false
for place = 2, #KEYS do
  local key, first = KEYS[place], 4 * (place - 2) + 2
  local incarnation, token, attempt, channel = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
  local state, r, values = read(key)
  local answer
  if state == 'none' or state == 'unreadable' then
    answer, unchanged = { state, now, values }, true
  elseif r.incarnation == incarnation and r.generation == token and r.attempt == attempt then
    if state ~= 'vacant' then
      redis.call('HSET', key, 'releasedAt', text_of(now), 'expiresAt', text_of(math.min(tonumber(r.expiresAt), now)))
      redis.call('HDEL', key, 'stepDownAskedAt')
      keep(key, purge_ms, tonumber(r.ttlMs), r.generation)
      redis.call('PUBLISH', channel, 'vacated ' .. token)
    else
      unchanged = true
    end
    answer = { 'vacated', now }
  elseif r.unconfirmed and r.incarnation == incarnation and r.attempt == attempt then
    -- This member of a quorum missed the confirmation: here it was no term, holds nobody up any longer, and becomes none.
    redis.call('HSET', key, 'releasedAt', text_of(now), 'expiresAt', text_of(math.min(tonumber(r.expiresAt), now)))
    answer = { 'vacated', now }
  else
    answer, unchanged = { 'lost', now, values }, true
  end
  answers[place - 1] = answer
end
-- After the writes: once asked, the server no longer looks whether it has room for them.
if unchanged then still_rules(KEYS[1]) end
return answers
