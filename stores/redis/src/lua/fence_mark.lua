-- What every script on marks begins with. A mark: lease (none until the first claim), token, claimedAt, previous, and
-- bumped, which is the token for as long as an operator has raised it and nobody has claimed it.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function is_token(text)
  return text and string.find(text, '^[1-9]%d*$') and text - TOKEN_MAX <= 0
end

-- How the mark of a key stands: none, unreadable or mark; its lease, its token, and what it was bumped to.
local function read_mark(key)
  local values = redis.pcall('HMGET', key, 'lease', 'token', 'bumped')
  if values.err then
    -- What is refused for another reason, as where a slot moves or a right is missing, may well be understood.
    if not string.find(values.err, 'WRONGTYPE', 1, true) then redis.call('HMGET', key, 'lease', 'token', 'bumped') end
    return 'unreadable', false, false, false
  end
  local lease, token, bumped = values[1], values[2], values[3]
  if not lease and not token and redis.call('EXISTS', key) == 0 then return 'none', false, false, false end
  local plain = is_token(token) and (not bumped or is_token(bumped))
  if not plain or lease == '' or (lease and #lease > 255) then return 'unreadable', lease, token, bumped end
  return 'mark', lease, token, bumped
end

-- The same, as far as whoever is told of it needs it to say what is wrong: a field of many megabytes would hold everybody up.
local LONGEST_TOLD = 4096
local function told(text)
  return text and string.sub(text, 1, LONGEST_TOLD)
end
local function told_mark(key)
  local state, lease, token, bumped = read_mark(key)
  return state, told(lease), told(token), told(bumped)
end
