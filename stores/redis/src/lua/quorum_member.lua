-- Whether this is another member by now than who asks has met: the members were recorded anew since, which gives each a new id. One that
-- has forgotten is told again when it is dialled.
local OTHER_MEMBER = redis.error_reply('OTHERQUORUM the members were recorded anew since')
local function is_another_member(key, id)
  local own = redis.call('HMGET', key, 'member')[1]
  return id ~= '' and own and own ~= id
end
