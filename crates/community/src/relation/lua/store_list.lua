-- Keeps a list that was loaded, unless its load was ended meanwhile.
--
-- A list is a sorted set: of each line the member is a user's id in 8 bytes, big-endian, so that lines of one
-- moment are in the order of their users; the score is the moment in milliseconds. Its head is the member
-- `=CHANGES COUNT WHOLE EPOCH` with an infinite score. What the head says and what it speaks of are one key: they
-- come and go together, and a set without its head, or with another count, is no list.
--
-- KEYS[1]  the list, KEYS[2]  its load
-- ARGV[1]  the token of the load
-- ARGV[2]  the number of the owner's changes, in the snapshot that the list was read in
-- ARGV[3]  1 if the list is whole, 0 if it is only its beginning
-- ARGV[4]  the epoch
-- ARGV[5]  time to live, in milliseconds
-- ARGV[6]  the lines: of each the moment and the id, 8 bytes each
--
-- Answers whether it is kept.
local list, load = KEYS[1], KEYS[2]
if redis.call('GET', load) ~= ARGV[1] then
    return 0
end
redis.call('UNLINK', load, list)

local lines, args = ARGV[6], {}
for at = 1, #lines, 16 do
    local high, low = struct.unpack('>I4I4', lines, at)
    args[#args + 1] = high * 4294967296 + low
    args[#args + 1] = string.sub(lines, at + 8, at + 15)
    if #args == 1000 then
        redis.call('ZADD', list, unpack(args))
        args = {}
    end
end
if #args > 0 then
    redis.call('ZADD', list, unpack(args))
end
-- Last: should a step above fail, what is there is no list.
redis.call('ZADD', list, '+inf', string.format('=%s %d %s %s', ARGV[2], #lines / 16, ARGV[3], ARGV[4]))
redis.call('PEXPIRE', list, ARGV[5])
return 1
