-- KEYS: index of names. ARGV: least name with its bracket, bound above all names, limit, prefix of records, most to look at.
-- Answers with the clock, the last name looked at or nothing if there are no more, and names with their fields.
seldom().still_rules(KEYS[1])
local least, bound, limit, prefix, looks = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local found, last, looked = {}, false, 0
while true do
  local names = redis.call('ZRANGEBYLEX', KEYS[1], least, bound, 'LIMIT', 0, limit)
  for _, name in ipairs(names) do
    if #found >= 2 * limit or looked >= looks then return { now, last, found } end
    local state, r = read(prefix .. name)
    -- A name without a record was purged.
    if state ~= 'none' then
      found[#found + 1] = name
      found[#found + 1] = r
    end
    last, looked = name, looked + 1
  end
  if #names < limit then return { now, false, found } end
  least = '(' .. last
end
