-- Reads a part of a cached list, or tells whether the caller may load it.
--
-- KEYS[1]  the list; see store_list.lua
-- KEYS[2]  its load
-- KEYS[3]  its fence, KEYS[4]  the epoch of all fences: only of a list that is read from facts
-- ARGV[1]  a token for the load, ARGV[2]  the time a load may take, in milliseconds
-- ARGV[3]  lines wanted
-- ARGV[4]  'offset' or 'after'
-- ARGV[5]  lines to skip, or the score of the line after which to begin; ARGV[6]  that line's member
-- ARGV[7]  a number of changes: a list that was read at it is known to be old, and goes; or ''
-- ARGV[8]  run id of this Redis, ARGV[9]  the time a fence stands, in milliseconds: with KEYS[3]
--
-- Answers {'rows', changes, lines kept, member, score, ...} with fewer lines only at the end of the list, or
-- {'load', epoch}, or {'none'}: somebody else loads it, or it is too long, or it is fenced.
local list, load = KEYS[1], KEYS[2]
local wanted = tonumber(ARGV[3])

-- The epoch begins when this process of Redis is first asked, and again when it has forgotten. Before it is
-- as old as a fence may be, a fence may have been forgotten; and what was kept in an older one may be old.
local epoch = '-'
if KEYS[3] then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    epoch = redis.call('GET', KEYS[4]) or ''
    local run, since = string.match(epoch, '^(%w+)/(%d+)$')
    if run ~= ARGV[8] or tonumber(since) > now then
        redis.call('SET', KEYS[4], string.format('%s/%.0f', ARGV[8], now))
        return {'none'}
    end
    if now - since < tonumber(ARGV[9]) or redis.call('EXISTS', KEYS[3]) == 1 then
        return {'none'}
    end
end

-- Whether a member comes before another one of the same score. Halves, since a number of Lua's has 53 bits.
local function is_before(member, other)
    local high, low = struct.unpack('>I4I4', member)
    local other_high, other_low = struct.unpack('>I4I4', other)
    return high > other_high or (high == other_high and low > other_low)
end

-- The rank of the first line after a place, whether or not that line is still there: a binary search among
-- the lines of its score. The head has rank 0.
local function rank_after(score, member)
    local low = redis.call('ZCOUNT', list, '(' .. score, '+inf')
    local high = low + redis.call('ZCOUNT', list, score, score)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if is_before(member, redis.call('ZREVRANGE', list, middle, middle)[1]) then
            high = middle
        else
            low = middle + 1
        end
    end
    return low
end

local head = redis.pcall('ZREVRANGE', list, 0, 0)
local changes, count, whole, of = string.match(head[1] or '', '^=(%d+) (%d+) ([01]) (.*)$')
if changes and changes ~= ARGV[7] and of == epoch and redis.call('ZCARD', list) == count + 1 then
    local first = ARGV[4] == 'offset' and ARGV[5] + 1 or rank_after(ARGV[5], ARGV[6])
    local rows = redis.call('ZREVRANGE', list, first, first + wanted - 1, 'WITHSCORES')
    if whole == '0' and #rows < 2 * wanted then
        return {'none'}
    end
    table.insert(rows, 1, 'rows')
    table.insert(rows, 2, changes)
    table.insert(rows, 3, count)
    return rows
end

-- Nothing, or something that was not written here.
redis.call('UNLINK', list)
if redis.call('SET', load, ARGV[1], 'NX', 'PX', ARGV[2]) then
    return {'load', epoch}
end
return {'none'}
