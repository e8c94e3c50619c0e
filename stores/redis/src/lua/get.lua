-- KEYS: index of names, record.
still_rules(KEYS[1])
local state, _, values = read(KEYS[2])
return { state, now, values }
