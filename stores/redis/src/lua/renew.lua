-- KEYS: index of names, records. ARGV: purge, then incarnation, token, attempt and ttl of each.
local purge_ms, answers, unchanged = ARGV[1], {}, false
for place = 2, #KEYS do
  local key, first = KEYS[place], 4 * (place - 2) + 2
  local incarnation, token, attempt, ttl = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
  local state, r = read(key, incarnation)
  local answer
  if state == 'none' or state == 'unreadable' then
    answer, unchanged = { state, now, r }, true
  elseif state == 'held' and r.incarnation == incarnation and r.generation == token and r.attempt == attempt then
    redis.call('HSET', key, 'expiresAt', string.format('%.0f', from + ttl), 'ttlMs', ttl, 'lastRenewedAt', now_text)
    if purge_ms ~= '0' then seldom().keep(key, purge_ms, ttl, r.generation) end
    answer = r.stepDownAskedAt and 'asked' or 'extended'
  else
    answer, unchanged = { 'lost', now, r }, true
  end
  answers[place - 1] = answer
end
-- After the writes: once asked, the server no longer looks whether it has room for them.
if unchanged then seldom().still_rules(KEYS[1]) end
return answers
