-- In one member of a quorum: terms that it holds, for members that missed them. Times are told as how long ago they were, as no
-- two members' clocks are compared.
-- KEYS: index of names, records. ARGV: incarnation, token and attempt of each.
seldom().still_rules(KEYS[1])
local answers = {}
local function ago(at)
  return at and string.format('%.0f', math.max(now - tonumber(at), 0)) or ''
end
for place = 2, #KEYS do
  local first = 3 * (place - 2) + 1
  local state, r = read(KEYS[place])
  if state == 'held' and r.incarnation == ARGV[first] and r.generation == ARGV[first + 1] and r.attempt == ARGV[first + 2] then
    answers[place - 1] = { 'held', r.owner, r.terms, r.note, ago(r.createdAt), ago(r.acquiredAt), r.previousOwner or '',
      r.previousGeneration or '', r.previousEnd or '', ago(r.previousAt) }
  else
    answers[place - 1] = { 'gone' }
  end
end
return answers
