-- KEYS: mark, then the data's. ARGV: lease, token, then what is to be done.
-- A server that was demoted may have missed the claim, and has refused the first write of what was to be done, so that
-- nothing was. Asked by the index of marks, whose key has the same prefix.
local fences = string.match(KEYS[1], '^{[^}]*}') .. ':fences'
local function still_fences()
  still_rules(fences)
end
-- What is told of what was let in. Where nothing was to be written, such a server has refused nothing yet, nor has one that is cut off
-- from the replicas that it must have. Asked after the writes, which neither has taken; whatever else keeps it from an answer
-- does not count, as they may be done.
local function admitted(answer)
  local asked = redis.pcall('ZREM', fences, '')
  local refused = type(asked) == 'table' and asked.err or ''
  if string.find(refused, 'READONLY', 1, true) or string.find(refused, 'NOREPLICAS', 1, true) then still_fences() end
  return { 'admitted', now, answer }
end
local state, lease, token, bumped = told_mark(KEYS[1])
if state ~= 'mark' or lease ~= ARGV[1] or token ~= ARGV[2] or bumped == token then
  still_fences()
  return { 'refused', now, state, lease, token, bumped }
end
