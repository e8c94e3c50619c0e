-- KEYS: index of names, record. ARGV: channel, pattern of all channels. Answers with the commands of terms that the user may not
-- give on them; with "untold" where the server cannot tell, as before Redis 7.
local index, key, missing = KEYS[1], KEYS[2], {}
local commands = {
  { 'HSET', key, 'owner', 'x' }, { 'HDEL', key, 'owner' }, { 'HINCRBY', key, 'terms', '1' }, { 'PEXPIRE', key, '1' },
  { 'PERSIST', key }, { 'ZADD', index, '0', 'x' }, { 'ZRANDMEMBER', index, '2' }, { 'PUBLISH', ARGV[1], 'x' },
  { 'HGET', key, 'terms' }, { 'SUBSCRIBE', ARGV[1] }, { 'PSUBSCRIBE', ARGV[2] }, { 'ZRANGEBYLEX', index, '-', '+' },
}
if not redis.acl_check_cmd then return { 'untold' } end
for _, command in ipairs(commands) do
  if not redis.acl_check_cmd(unpack(command)) then missing[#missing + 1] = string.lower(command[1]) end
end
return missing
