-- Tells all that is kept of a user and would be served, and changes nothing.
--
-- KEYS  his followers, his followings, his counters, the epoch
--
-- Answers of each list {changes, whole, member, score, ...}, or {} where none would be served; and the counters,
-- or an empty string.
local function look(list, epoch)
    local head = redis.pcall('ZREVRANGE', list, 0, 0)
    local changes, count, whole, of = string.match(head[1] or '', '^=(%d+) (%d+) ([01]) (.*)$')
    if not changes or (epoch and of ~= epoch) or redis.call('ZCARD', list) ~= count + 1 then
        return {}
    end
    local rows = redis.call('ZREVRANGE', list, 1, -1, 'WITHSCORES')
    table.insert(rows, 1, changes)
    table.insert(rows, 2, whole)
    return rows
end

local value = redis.pcall('GET', KEYS[3])
return {look(KEYS[1]), look(KEYS[2], redis.call('GET', KEYS[4]) or ''), type(value) == 'string' and value or ''}
