-- In one member of a quorum: removes what nobody uses, as far as this member can tell; a majority was asked before.
-- KEYS: index of names, what was removed, records. ARGV: whether they are removed, for how long they are unused, then the names.
-- Answers of each whether it is unused, used or none.
local index, removed, removes, unused_for = KEYS[1], KEYS[2], ARGV[1] == '1', tonumber(ARGV[2])
local less = seldom().less
local answers, unused, highest = {}, {}, '1'
for place = 3, #KEYS do
  local state, r = read(KEYS[place])
  local answer = state == 'none' and 'none' or 'used'
  -- What a candidate took and left counts as well: it has run out, so that it cannot be confirmed before it is taken anew.
  if (state == 'vacant' or state == 'expired')
    and tonumber(r.expiresAt) <= now - math.max(unused_for, 10 * tonumber(r.ttlMs)) and less(r.generation, now_text) then
    answer = 'unused'
    unused[#unused + 1] = place
    if less(highest, r.generation) then highest = r.generation end
  end
  answers[place - 2] = answer
end
if removes and #unused > 0 then
  -- A server whose memory is full lets a script go on that began with a write which needs none.
  seldom().still_rules(index)
  -- Before the records: whatever stops this between, no token is forgotten.
  if less(seldom().highest_removed(removed), highest) then redis.call('HSET', removed, 'token', highest) end
  for _, place in ipairs(unused) do
    redis.call('DEL', KEYS[place])
    redis.call('ZREM', index, ARGV[place])
  end
end
return answers
