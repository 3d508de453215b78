-- Takes a token of a bucket, or says when there will be one.
--
-- KEYS[1]  the bucket: the moment at which it is full if nothing more is taken, in microseconds
-- ARGV[1]  time in which one token is given back, in microseconds
-- ARGV[2]  time in which an empty bucket fills, in microseconds
--
-- Answers {1, tokens left}, or {0, microseconds until the next token}.
--
-- A bucket that is gone is a full one, so the key lives exactly until it is full: expiry never refills.
-- The time is Redis's own, so that all processes go by one clock.
local refill, whole = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function keep(full_at)
    redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PXAT', string.format('%.0f', math.ceil(full_at / 1000)))
end

local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or now) or now, now)
if full_at > now + whole then
    -- The clock was set back. The bucket is empty then, and fills from here.
    full_at = now + whole
    keep(full_at)
end

local after = full_at + refill
local missing = after - now - whole
if missing > 0 then
    return {0, missing}
end
keep(after)
return {1, math.floor(-missing / refill)}
