-- In one member of a quorum: keeps who it is, and who the members are, where it does not keep that yet; "anew" whatever it keeps.
-- KEYS: what is kept of the quorum. ARGV: id, all members or nothing, '1' if all of them keep that, whether anew.
-- Answers with what is kept now.
local key, id, members, complete = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local kept = redis.call('HMGET', key, 'member', 'members', 'complete')
if ARGV[4] == 'anew' or not kept[2] and members ~= '' then
  redis.call('HSET', key, 'member', id, 'members', members, 'complete', complete)
elseif not kept[1] then
  redis.call('HSET', key, 'member', id)
elseif complete == '1' and kept[1] == id and kept[2] and kept[3] ~= '1' then
  redis.call('HSET', key, 'complete', complete)
else
  return kept
end
return redis.call('HMGET', key, 'member', 'members', 'complete')
