-- Ends a script that has written nothing on a server that was demoted meanwhile, so that it does not answer from what it no
-- longer rules: removing nothing is a write, which such a server refuses. One that only has no room for writes rules still.
local function still_rules(index)
  local asked = redis.pcall('ZREM', index, '')
  local refused = type(asked) == 'table' and asked.err
  if refused and not string.find(refused, 'MISCONF', 1, true) then redis.call('ZREM', index, '') end
end
