-- Appends records to streams and moves the checkpoint, if nobody else has meanwhile.
-- KEYS[1]   hash of the group: owner, sequence, checkpoint
-- KEYS[2..] streams
-- ARGV[1]   who writes
-- ARGV[2]   sequence of this write: one more than that of the last
-- ARGV[3]   the checkpoint
-- ARGV[4]   entries that a stream keeps, about; 0 keeps all
-- ARGV[5..] for each record: index of its stream in KEYS, how many texts follow, names and values
-- Answers 'written', 'repeated' if this very write is there already, or 'fenced'.
local group = redis.call('HMGET', KEYS[1], 'owner', 'sequence', 'checkpoint')
if group[1] ~= ARGV[1] then
  return 'fenced'
end
local behind = tonumber(ARGV[2]) - tonumber(group[2] or '0')
if behind == 0 and group[3] == ARGV[3] then
  return 'repeated'
elseif behind ~= 1 then
  return 'fenced'
end

-- A script is not undone where it fails, so what could fail is looked at first.
for index = 2, #KEYS do
  local kind = redis.call('TYPE', KEYS[index]).ok
  if kind ~= 'none' and kind ~= 'stream' then
    return redis.error_reply('WRONGTYPE ' .. KEYS[index] .. ' is no stream')
  end
end

local keep = tonumber(ARGV[4])
local at = 5
while at <= #ARGV do
  local stream = KEYS[tonumber(ARGV[at])]
  local last = at + 1 + tonumber(ARGV[at + 1])
  if keep > 0 then
    redis.call('XADD', stream, 'MAXLEN', '~', keep, '*', unpack(ARGV, at + 2, last))
  else
    redis.call('XADD', stream, '*', unpack(ARGV, at + 2, last))
  end
  at = last + 1
end
redis.call('HSET', KEYS[1], 'sequence', ARGV[2], 'checkpoint', ARGV[3])
return 'written'
