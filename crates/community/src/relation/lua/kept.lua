-- Finds out of which users anything is kept.
--
-- KEYS  of each user: his followers, his followings, his counters
--
-- Answers the places of those users, counted from 0.
local kept = {}
for user = 0, #KEYS / 3 - 1 do
    if redis.call('EXISTS', unpack(KEYS, 3 * user + 1, 3 * user + 3)) > 0 then
        kept[#kept + 1] = user
    end
end
return kept
