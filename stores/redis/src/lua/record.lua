-- What every script on records begins with: the server's clock, and strict reading. A record is always called `r`: before a script
-- is sent, the name of a field after it becomes its place in the answer to HMGET, FIELDS the names of all, PLAIN and WITH_SLASHES
-- patterns, and TOKEN_MAX and BEYOND_TTL_MAX_MS numbers, as each table and each closure that a script makes is made anew whenever
-- it runs, and each variable around a closure.
-- Numbers of 64 bits stay texts here, but for tokens: Lua's numbers are exact up to 2^53 only.
local MAX = '9223372036854775807'
local time = redis.call('TIME')
-- In milliseconds: the first three of six digits, which come without their leading zeros. Writing a number out takes longer.
local now_text = time[1] .. string.sub('00000' .. time[2], -6, -4)
local now = now_text + 0
-- From when a lease counts that is taken or extended now. The clock shows whole milliseconds and hides how much of this one is
-- over: without one more, the lease would be given to another up to a millisecond before its ttl is over.
local from = now + 1

-- What few runs need, made when one does.
local made
local function seldom()
  if made then return made end
  -- Not the one above: a variable around a closure is made anew, too.
  local MAX = '9223372036854775807'

  local function text_of(number)
    return string.format('%.0f', number)
  end

  -- Whether one whole number is less than another; both without leading zeros.
  local function less(a, b)
    if #a ~= #b then return #a < #b end
    return a < b
  end

  -- Whether it has 63 bits.
  local function fits(number)
    return not less(MAX, number)
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

  -- A name that nobody uses is removed in the end, if that is wished; never sooner than ten ttls, nor with a token that is
  -- ahead of the clock: the next one starts from the clock.
  local function keep(key, purge_ms, ttl, generation)
    local wait = math.max(tonumber(purge_ms), 10 * ttl)
    if less(generation, text_of(now + wait)) then
      redis.call('PEXPIRE', key, text_of(wait))
    else
      redis.call('PERSIST', key)
    end
  end

  -- A number and one, beyond what Lua's numbers keep exactly: counted by the server, whose numbers have 64 bits.
  local function one_more(key, field)
    redis.call('HINCRBY', key, field, 1)
    return redis.call('HGET', key, field)
  end

  -- As much of a longer text as so many bytes hold, and no part of a character, which has four bytes at most.
  local function beginning(text, longest)
    local last = longest
    while last > longest - 3 and string.find(string.sub(text, last + 1, last + 1), '[\128-\191]') do last = last - 1 end
    return string.sub(text, 1, last)
  end

  -- A record as far as its reader needs it to say what is wrong: with a field of many megabytes, each answer would take longer than
  -- any term has.
  local LONGEST_TOLD = 4096
  local function shortened(r)
    for place = 1, #r do
      if r[place] and #r[place] > LONGEST_TOLD then r[place] = beginning(r[place], LONGEST_TOLD) end
    end
    return r
  end

  STILL_RULES

  HIGHEST_REMOVED

  made = {
    text_of = text_of, less = less, fits = fits, is_utf8 = is_utf8, is_name = is_name, keep = keep, one_more = one_more,
    still_rules = still_rules, beginning = beginning, shortened = shortened, highest_removed = highest_removed,
  }
  return made
end

-- How the record of a key stands: none, unreadable, vacant, expired or held; and the record. `mine` is the incarnation of who asks,
-- if anybody does: a right one.
local function read(key, mine)
  local r = redis.pcall('HMGET', key, FIELDS)
  if r.err then
    -- What is refused for another reason, as where a slot moves or a right is missing, may well be understood.
    if not string.find(r.err, 'WRONGTYPE', 1, true) then redis.call('HMGET', key, FIELDS) end
    return 'unreadable', false
  end
  local owner, incarnation, generation, attempt, terms, ttl = r.owner, r.incarnation, r.generation, r.attempt, r.terms, r.ttlMs
  local created, acquired, expires, note = r.createdAt, r.acquiredAt, r.expiresAt, r.note
  local renewed, released, asked = r.lastRenewedAt, r.releasedAt, r.stepDownAskedAt
  local by, before, ended, at = r.previousOwner, r.previousGeneration, r.previousEnd, r.previousAt
  -- Somebody else's may be of any length, and decides nothing.
  if note and #note > 1024 then
    note = seldom().beginning(note, 1024)
    r.note = note
  end
  if owner and incarnation and generation and attempt and terms and ttl and created and acquired and expires and note
    -- Digits, and nothing else: one search for all costs less than one for each.
    and string.find(generation .. attempt .. terms .. ttl .. created .. acquired .. expires .. (renewed or '') .. (released or '')
      .. (asked or '') .. (before or '') .. (at or ''), '^[0-9]+$')
    -- None of them is empty, and what is counted begins with no zero.
    and generation >= '1' and attempt >= '1' and terms >= '1' and ttl >= '1' and created ~= '' and acquired ~= '' and expires ~= ''
    and renewed ~= '' and released ~= '' and asked ~= ''
    and #created <= 15 and #acquired <= 15 and #expires <= 15
    and (not renewed or #renewed <= 15) and (not released or #released <= 15) and (not asked or #asked <= 15)
    and ttl - 100 >= 0 and ttl - 86400000 <= 0
    -- What is beyond either is a slip, and would keep everybody out for good. But its holder, whose expiry may be so far off as the
    -- clock was set back, goes on, and so mends it.
    and generation - TOKEN_MAX <= 0 and (released or incarnation == mine or expires - now - ttl <= BEYOND_TTL_MAX_MS)
    and (#attempt < 19 and #terms < 19 or seldom().fits(attempt) and seldom().fits(terms))
    and (incarnation == mine or #incarnation == 32 and string.find(incarnation, '^[0-9a-f]+$'))
    -- What most names are like: nothing can be wrong with them.
    and (#owner <= 253 and (string.find(owner, PLAIN) or string.find(owner, WITH_SLASHES) and not string.find(owner, '/[/.]'))
      or seldom().is_name(owner, 253))
    and (note == '' or not string.find(note, '[\128-\255]') or seldom().is_utf8(note))
    and (not r.unconfirmed or r.unconfirmed == 'first' or r.unconfirmed == 'later')
    -- The term before: all of it, or nothing.
    and (not (ended or by or before or at)
      or (ended == 'released' or ended == 'expired') and by and before and at
        and before >= '1' and before - TOKEN_MAX <= 0 and at ~= '' and #at <= 15
        and (by == owner
          or #by <= 253 and (string.find(by, PLAIN) or string.find(by, WITH_SLASHES) and not string.find(by, '/[/.]'))
          or seldom().is_name(by, 253))) then
    if released then return 'vacant', r end
    if expires - now <= 0 then return 'expired', r end
    return 'held', r
  end
  for place = 1, #r do
    if r[place] then return 'unreadable', seldom().shortened(r) end
  end
  return redis.call('EXISTS', key) == 0 and 'none' or 'unreadable', r
end
