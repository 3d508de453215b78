-- After a commit of the projector: brings what is kept of some users up to date, and makes nothing anew.
--
-- KEYS  of each user: his followers, his followings, his counters
-- ARGV  of each user: the number of his changes before, and after; his counters after, as in store_counters.lua
--       without the moment; what changed among his followers, of each '+' or '-', moment and id (17 bytes);
--       and once, at the end: the lines that a list may have
--
-- A list is moved on only from the number that the commit found, so it has exactly the commit's changes to make.
-- One with an older number has missed some, and goes. One with a newer number has them already.

-- Makes the changes to the lines. Answers whether the list is still one.
local function edit(list, whole, edits)
    for at = 1, #edits, 17 do
        local high, low = struct.unpack('>I4I4', edits, at + 1)
        local moment, member = high * 4294967296 + low, string.sub(edits, at + 9, at + 16)
        local oldest
        if whole == '0' then
            oldest = tonumber(redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')[2])
        end
        if string.sub(edits, at, at) == '-' or (oldest and moment < oldest) then
            -- What lies below the beginning of a long list is not in it.
            redis.call('ZREM', list, member)
        elseif oldest and moment == oldest then
            return false
        else
            redis.call('ZADD', list, moment, member)
        end
    end
    return true
end

local function move(list, before, after, edits, most)
    local head = redis.pcall('ZREVRANGE', list, 0, 0)[1]
    local changes, count, whole, epoch = string.match(head or '', '^=(%d+) (%d+) ([01]) (.*)$')
    if not changes or (changes ~= before and tonumber(changes) >= tonumber(after)) then
        return
    end
    local is_as_stored = redis.call('ZCARD', list) == count + 1
    if changes ~= before or not is_as_stored or not edit(list, whole, edits) then
        redis.call('UNLINK', list)
        return
    end
    -- The new head before the old one goes: a set that was empty for a moment would have lost its time to live.
    count = redis.call('ZCARD', list) - 1
    if count > most then
        -- Of a list that has grown long the beginning stays, as when it is loaded.
        redis.call('ZREMRANGEBYRANK', list, 0, count - most - 1)
        count, whole = most, '0'
    end
    redis.call('ZADD', list, '+inf', string.format('=%s %d %s %s', after, count, whole, epoch))
    redis.call('ZREM', list, head)
end

local function count(counters, after, value)
    local kept = redis.pcall('GET', counters)
    if type(kept) ~= 'string' or #kept ~= 40 then
        return
    end
    local high, low = struct.unpack('>I4I4', kept, 21)
    if high * 4294967296 + low < tonumber(after) then
        redis.call('SET', counters, value .. string.sub(kept, 33), 'KEEPTTL')
    end
end

local most = tonumber(ARGV[#ARGV])
for user = 0, #KEYS / 3 - 1 do
    local before, after, value, edits = unpack(ARGV, 4 * user + 1, 4 * user + 4)
    move(KEYS[3 * user + 1], before, after, edits, most)
    move(KEYS[3 * user + 2], before, after, '', most)
    count(KEYS[3 * user + 3], after, value)
end
