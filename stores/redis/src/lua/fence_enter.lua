-- KEYS: mark, then the data's. ARGV: lease, token, then what is to be done.
local state, lease, token, bumped = read_mark(KEYS[1])
if state ~= 'mark' or lease ~= ARGV[1] or token ~= ARGV[2] or bumped == token then
  return { 'refused', now, state, lease, token, bumped }
end
