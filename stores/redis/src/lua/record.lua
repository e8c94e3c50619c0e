-- What every script on records begins with: the server's clock, and strict reading. A record is always called `r`: before a script
-- is sent, the name of a field after it becomes its place in the answer to HMGET, and FIELDS the names of all, as each table and
-- each closure that a script makes is made anew whenever it runs.
-- Numbers of 64 bits stay texts here: Lua's numbers are exact up to 2^53 only.
local MAX = '9223372036854775807'
local time = redis.call('TIME')
local now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000

local function text_of(number)
  return string.format('%.0f', number)
end

-- When a lease ends that is taken or extended now. The clock shows whole milliseconds and hides how much of this one is over:
-- without one more, the lease would be given to another up to a millisecond before its ttl is over.
local function end_of(ttl)
  return text_of(now + ttl + 1)
end

-- Whether one whole number is less than another; both without leading zeros.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
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

local function is_name(text, longest)
  if not text or #text > longest then return false end
  -- What most names are like: nothing below can be wrong with it.
  if string.find(text, '^[%w_:@-][%w_:@.-]*$') then return true end
  if text == '' or string.find(text, '[%z\1-\31\127]') or string.find(text, '^ ') or string.find(text, ' $') then
    return false
  end
  local path = '/' .. text .. '/'
  if string.find(path, '//', 1, true) or string.find(path, '/./', 1, true) or string.find(path, '/../', 1, true) then
    return false
  end
  if not string.find(text, '[\128-\255]') then return true end
  if not is_utf8(text) or string.find(text, '\194[\128-\159]') then return false end
  -- White space outside ASCII, by the bytes of its UTF-8.
  local spaces = { '\194\160', '\225\154\128', '\226\128[\128-\138]', '\226\128[\168\169\175]', '\226\129\159', '\227\128\128' }
  for _, space in ipairs(spaces) do
    if string.find(text, '^' .. space) or string.find(text, space .. '$') then return false end
  end
  return true
end

-- How all numbers of a record look in a row: one search for all costs less than one for each.
local NUMBERS = '^[0-9a-f]+ [1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d* [1-9]%d* %d+ %d+ %d+ %d+ %d+ %d+ %d+$'

local function understood(r)
  local owner, incarnation, generation, attempt, terms, ttl = r.owner, r.incarnation, r.generation, r.attempt, r.terms, r.ttlMs
  local created, acquired, expires, note = r.createdAt, r.acquiredAt, r.expiresAt, r.note
  if not (owner and incarnation and generation and attempt and terms and ttl and created and acquired and expires and note) then
    return false
  end
  local renewed, released, asked = r.lastRenewedAt or '0', r.releasedAt or '0', r.stepDownAskedAt or '0'
  local before, at = r.previousGeneration or '1', r.previousAt or '0'
  if not (string.find(incarnation .. ' ' .. generation .. ' ' .. attempt .. ' ' .. terms .. ' ' .. ttl .. ' ' .. before .. ' ' ..
      created .. ' ' .. acquired .. ' ' .. expires .. ' ' .. renewed .. ' ' .. released .. ' ' .. asked .. ' ' .. at, NUMBERS)
    and #incarnation == 32 and #created <= 15 and #acquired <= 15 and #expires <= 15 and #renewed <= 15 and #released <= 15
    and #asked <= 15 and #at <= 15 and ttl - 100 >= 0 and ttl - 86400000 <= 0
    and (#generation < 19 and #attempt < 19 and #terms < 19 and #before < 19
      or not (less(MAX, generation) or less(MAX, attempt) or less(MAX, terms) or less(MAX, before)))
    and is_name(owner, 253)
    and (note == '' or #note <= 1024 and (not string.find(note, '[\128-\255]') or is_utf8(note)))) then
    return false
  end
  local unconfirmed, ended = r.unconfirmed, r.previousEnd
  if unconfirmed and unconfirmed ~= 'first' and unconfirmed ~= 'later' then return false end
  if not ended then return not (r.previousOwner or r.previousGeneration or r.previousAt) end
  return (ended == 'released' or ended == 'expired') and r.previousGeneration and r.previousAt and is_name(r.previousOwner, 253)
end

-- How the record of a key stands: none, unreadable, vacant, expired or held; and the record.
local function read(key)
  local r = redis.pcall('HMGET', key, FIELDS)
  if r.err then
    -- What is refused for another reason, as where a slot moves or a right is missing, may well be understood.
    if not string.find(r.err, 'WRONGTYPE', 1, true) then redis.call('HMGET', key, FIELDS) end
    return 'unreadable', false
  end
  if not understood(r) then
    for place = 1, #r do
      if r[place] then return 'unreadable', r end
    end
    return redis.call('EXISTS', key) == 0 and 'none' or 'unreadable', r
  end
  if r.releasedAt then return 'vacant', r end
  if r.expiresAt - now <= 0 then return 'expired', r end
  return 'held', r
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

-- A number and one. Beyond what Lua's numbers keep exactly, counting is left to the server, whose numbers have 64 bits.
local function one_more(key, field, number)
  if #number < 16 then return text_of(number + 1) end
  redis.call('HINCRBY', key, field, 1)
  return redis.call('HGET', key, field)
end
