-- Reads a user's counters and the present moment.
--
-- KEYS[1]  the counters; see store_counters.lua
--
-- Answers {value, milliseconds}; the value is empty where there is none.
local time = redis.call('TIME')
local value = redis.pcall('GET', KEYS[1])
return {type(value) == 'string' and value or '', time[1] * 1000 + math.floor(time[2] / 1000)}
