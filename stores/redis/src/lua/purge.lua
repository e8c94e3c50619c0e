-- KEYS: index of names, records. ARGV: whether they are removed, for how long they are unused, then the names.
-- Answers 1 for each that nobody uses, and 0 for the others.
local index, removes, unused_for, answers = KEYS[1], ARGV[1] == '1', tonumber(ARGV[2]), {}
for place = 2, #KEYS do
  local key = KEYS[place]
  local state, r = read(key)
  -- The next token of the name starts from the clock. What a quorum's candidate has asked for is none of one server's.
  local idle = (state == 'vacant' or state == 'expired') and not r.unconfirmed
    and tonumber(r.expiresAt) <= now - math.max(unused_for, 10 * tonumber(r.ttlMs)) and seldom().less(r.generation, now_text)
  if idle and removes then
    redis.call('DEL', key)
    redis.call('ZREM', index, ARGV[place + 1])
  end
  answers[place - 1] = idle and 1 or 0
end
return answers
