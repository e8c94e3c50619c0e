-- KEYS: refusals. ARGV: how many, the token of the last.
redis.call('HINCRBY', KEYS[1], 'count', ARGV[1])
redis.call('HSET', KEYS[1], 'last', ARGV[2], 'at', redis.call('TIME')[1])
return { 'noted' }
