-- Takes a group over: from now on only the new owner can write.
-- KEYS[1]  hash of the group: owner, sequence, checkpoint
-- ARGV[1]  the new owner
-- Answers {sequence, checkpoint}, or an empty list where nothing was written yet.
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
local sequence = redis.call('HGET', KEYS[1], 'sequence')
if not sequence then
  return {}
end
return {sequence, redis.call('HGET', KEYS[1], 'checkpoint')}
