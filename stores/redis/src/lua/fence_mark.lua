-- What every script on marks begins with. A mark: lease (none until the first claim), token, claimedAt, previous.
local MAX = '9223372036854775807'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- How the mark of a key stands: none, unreadable or mark; its lease and its token.
local function read_mark(key)
  local values = redis.pcall('HMGET', key, 'lease', 'token')
  if values.err then return 'unreadable', false, false end
  local lease, token = values[1], values[2]
  if not lease and not token and redis.call('EXISTS', key) == 0 then return 'none', false, false end
  local plain = token and string.find(token, '^[1-9]%d*$') and (#token < #MAX or (#token == #MAX and token <= MAX))
  if not plain or lease == '' or (lease and #lease > 255) then return 'unreadable', lease, token end
  return 'mark', lease, token
end
