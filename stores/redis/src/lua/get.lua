-- KEYS: index of names, record.
seldom().still_rules(KEYS[1])
local state, r = read(KEYS[2])
return { state, now, r }
