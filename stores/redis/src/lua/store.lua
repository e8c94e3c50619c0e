-- Gives a store its id, where it has none. KEYS: what is kept of the store. ARGV: the id. Answers with the one that it has now.
local id = redis.call('HGET', KEYS[1], 'id')
if id then return { id } end
redis.call('HSET', KEYS[1], 'id', ARGV[1])
return { ARGV[1] }
