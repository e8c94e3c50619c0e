-- In one member of a quorum: lets go of what was taken and never confirmed, so that it holds nobody up; and of a token that was
-- confirmed here and can be nobody's any more.
-- KEYS: index of names, record. ARGV: incarnation, attempt, and the token below which it can be nobody's, or 0.
local key, incarnation, attempt, below = KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local state, r = read(key, incarnation)
if state == 'held' and r.incarnation == incarnation and r.attempt == attempt then
  if r.unconfirmed then
    redis.call('HSET', key, 'expiresAt', now_text)
  elseif seldom().less(r.generation, below) then
    -- No term any more, but what a candidate has left. Its token stays: here none ever falls.
    redis.call('HSET', key, 'expiresAt', now_text, 'unconfirmed', r.previousEnd and 'later' or 'first')
    if r.terms ~= '1' then redis.call('HINCRBY', key, 'terms', '-1') end
  end
end
return { 'undone', now }
