-- What every script on records begins with: the server's clock, and strict reading. FIELDS stands before this.
-- Numbers of 64 bits stay texts here: Lua's numbers are exact up to 2^53 only.
local MAX = '9223372036854775807'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function text_of(number)
  return string.format('%.0f', number)
end

-- When a lease ends that is taken or extended now. The clock shows whole milliseconds and hides how much of this one is over:
-- without one more, the lease would be given to another up to a millisecond before its ttl is over.
local function end_of(ttl)
  return text_of(now + tonumber(ttl) + 1)
end

-- Whether one whole number is less than another; both without leading zeros.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

local function is_number(text)
  return text and string.find(text, '^[1-9]%d*$') and not less(MAX, text)
end

local function is_date(text)
  return text and #text <= 15 and string.find(text, '^%d+$')
end

-- Well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
local function is_utf8(text)
  local at = 1
  while at <= #text do
    local a, b, c, d = string.byte(text, at, at + 3)
    local tail = function(byte) return byte and byte >= 128 and byte <= 191 end
    if a <= 127 then at = at + 1
    elseif a >= 194 and a <= 223 and tail(b) then at = at + 2
    elseif a >= 224 and a <= 239 and tail(b) and tail(c)
      and not (a == 224 and b < 160) and not (a == 237 and b > 159) then at = at + 3
    elseif a >= 240 and a <= 244 and tail(b) and tail(c) and tail(d)
      and not (a == 240 and b < 144) and not (a == 244 and b > 143) then at = at + 4
    else return false end
  end
  return true
end

-- White space outside ASCII, by the bytes of its UTF-8.
local WHITE = { '\194\160', '\225\154\128', '\226\128[\128-\138]', '\226\128[\168\169\175]', '\226\129\159', '\227\128\128' }

local function is_name(text, longest)
  if not text or text == '' or #text > longest then return false end
  if string.find(text, '[%z\1-\31\127]') or string.find(text, '^ ') or string.find(text, ' $') then return false end
  local path = '/' .. text .. '/'
  if string.find(path, '//', 1, true) or string.find(path, '/./', 1, true) or string.find(path, '/../', 1, true) then
    return false
  end
  if not string.find(text, '[\128-\255]') then return true end
  if not is_utf8(text) or string.find(text, '\194[\128-\159]') then return false end
  for _, white in ipairs(WHITE) do
    if string.find(text, '^' .. white) or string.find(text, white .. '$') then return false end
  end
  return true
end

local function is_note(text)
  return text and #text <= 1024 and (not string.find(text, '[\128-\255]') or is_utf8(text))
end

local function optional(check, text)
  return text == false or check(text)
end

local function understood(r)
  if not (is_name(r.owner, 253) and r.incarnation and #r.incarnation == 32
    and not string.find(r.incarnation, '[^0-9a-f]') and is_number(r.generation) and is_number(r.attempt)
    and is_number(r.terms) and is_number(r.ttlMs) and not less(r.ttlMs, '100') and not less('86400000', r.ttlMs)
    and is_date(r.createdAt) and is_date(r.acquiredAt) and optional(is_date, r.lastRenewedAt)
    and is_date(r.expiresAt) and optional(is_date, r.releasedAt) and optional(is_date, r.stepDownAskedAt)
    and is_note(r.note)
    and (r.unconfirmed == false or r.unconfirmed == 'first' or r.unconfirmed == 'later')) then
    return false
  end
  if r.previousEnd == false then
    return not (r.previousOwner or r.previousGeneration or r.previousAt)
  end
  return is_name(r.previousOwner, 253) and is_number(r.previousGeneration) and is_date(r.previousAt)
    and (r.previousEnd == 'released' or r.previousEnd == 'expired')
end

-- How the record of a key stands: none, unreadable, vacant, expired or held; its fields by name; and in their order.
local function read(key)
  local values = redis.pcall('HMGET', key, unpack(FIELDS))
  if values.err then
    -- What is refused for another reason, as where a slot moves or a right is missing, may well be understood.
    if not string.find(values.err, 'WRONGTYPE', 1, true) then redis.call('HMGET', key, unpack(FIELDS)) end
    return 'unreadable', nil, false
  end
  local r, found = {}, false
  for place, field in ipairs(FIELDS) do
    r[field] = values[place]
    found = found or values[place] ~= false
  end
  if not found and redis.call('EXISTS', key) == 0 then return 'none', nil, values end
  if not understood(r) then return 'unreadable', nil, values end
  if r.releasedAt then return 'vacant', r, values end
  if tonumber(r.expiresAt) <= now then return 'expired', r, values end
  return 'held', r, values
end

-- A name that nobody uses is removed in the end, if that is wished; never sooner than ten ttls, nor with a token that is
-- ahead of the clock: the next one starts from the clock.
local function keep(key, purge_ms, ttl, generation)
  if purge_ms == 0 then return end
  local wait = math.max(purge_ms, 10 * ttl)
  if less(generation, text_of(now + wait)) then
    redis.call('PEXPIRE', key, text_of(wait))
  else
    redis.call('PERSIST', key)
  end
end
