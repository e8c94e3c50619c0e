-- The highest token that a clean-up of a quorum has removed from this member: what a name without a record may have had, so that
-- nothing at or below it is confirmed here. 1 where nothing was removed, which is no term's.
local function highest_removed(key)
  local token = redis.call('HGET', key, 'token')
  if not token then return '1' end
  if not string.find(token, '^[1-9]%d*$') or token - TOKEN_MAX > 0 then
    error('the field "token" of the key "' .. key .. '" is no token; mend it with HSET')
  end
  return token
end
