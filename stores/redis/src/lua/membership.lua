-- In one member of a quorum: keeps who it is, and who the members are, where it does not keep that yet; "instead" of the members
-- that were seen there, and of no others: what comes late must not undo what was recorded since.
-- KEYS: what is kept of the quorum. ARGV: id, all members or nothing, '1' if all of them keep that, "instead", members that were seen.
-- Answers with what is kept now.
local key, id, members, complete = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local kept = redis.call('HMGET', key, 'member', 'members', 'complete')
-- Who they are, whatever hosts led to them.
local function ids(list)
  return (string.gsub(list, '=%S*', ''))
end
local is_as_seen = ARGV[4] == 'instead' and (kept[2] or '') == ARGV[5]
if is_as_seen then
  redis.call('HSET', key, 'member', id, 'members', members, 'complete', complete)
  redis.call('HDEL', key, 'readmitted')
elseif not kept[2] and members ~= '' and ARGV[4] ~= 'instead' then
  redis.call('HSET', key, 'member', id, 'members', members, 'complete', complete)
  -- All members kept it before: this one has forgotten it, or is another server at the same host.
  if complete == '1' then redis.call('HSET', key, 'readmitted', redis.call('TIME')[1]) end
elseif not kept[1] and ARGV[4] ~= 'instead' then
  redis.call('HSET', key, 'member', id)
elseif complete == '1' and kept[1] == id and kept[2] and ids(kept[2]) == ids(members) and kept[3] ~= '1' then
  redis.call('HSET', key, 'complete', complete)
else
  return kept
end
return redis.call('HMGET', key, 'member', 'members', 'complete')
