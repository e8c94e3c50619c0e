-- KEYS: index of names, records. ARGV: whether they are removed, for how long they are unused, then the names.
-- Answers 1 for each that nobody uses, and 0 for the others.
local index, removes, unused_for, answers = KEYS[1], ARGV[1] == '1', tonumber(ARGV[2]), {}
for place = 2, #KEYS do
  local key = KEYS[place]
  local state, r = read(key)
  local idle = false
  -- What a quorum's candidate has asked for is none of one server's.
  if (state == 'vacant' or state == 'expired') and not r.unconfirmed then
    -- The next token of the name starts from the clock, which may have been set back a little by then, or be another server's:
    -- so the token must be as far behind.
    local since = now - math.max(unused_for, 10 * tonumber(r.ttlMs))
    idle = tonumber(r.expiresAt) <= since and seldom().less(r.generation, string.format('%.0f', since))
  end
  if idle and removes then
    redis.call('DEL', key)
    redis.call('ZREM', index, ARGV[place + 1])
  end
  answers[place - 1] = idle and 1 or 0
end
return answers
