-- KEYS: mark, then the data's. ARGV: lease, token, then what is to be done.
-- A server that was demoted may have missed the claim, and has refused the first write of what was to be done, so that
-- nothing was. Asked by the index of marks, whose key has the same prefix.
local function still_fences()
  still_rules(string.match(KEYS[1], '^{[^}]*}') .. ':fences')
end
local state, lease, token, bumped = read_mark(KEYS[1])
if state ~= 'mark' or lease ~= ARGV[1] or token ~= ARGV[2] or bumped == token then
  still_fences()
  return { 'refused', now, state, lease, token, bumped }
end
