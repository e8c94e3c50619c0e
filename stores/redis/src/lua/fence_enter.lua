-- KEYS: mark, then the data's. ARGV: lease, token, then what is to be done.
local state, lease, token, bumped = read_mark(KEYS[1])
if state ~= 'mark' or lease ~= ARGV[1] or token ~= ARGV[2] or bumped == token then
  -- A server that was demoted may have missed the claim. Asked by the index of marks, whose key has the same prefix.
  still_rules(string.match(KEYS[1], '^{[^}]*}') .. ':fences')
  return { 'refused', now, state, lease, token, bumped }
end
