-- Keeps the counters of a user as the database has them, unless newer ones are kept.
--
-- A value has 40 bytes: five counters (4 bytes each), the number of the user's changes (8), CRC-32 of these (4), and
-- the moment in milliseconds at which the database was last asked (8); all big-endian.
--
-- KEYS[1]  the counters
-- ARGV[1]  the value, ARGV[2]  the number of the user's changes, ARGV[3]  time to live, in milliseconds
local kept = redis.pcall('GET', KEYS[1])
if type(kept) == 'string' and #kept == 40 then
    local high, low = struct.unpack('>I4I4', kept, 21)
    if high * 4294967296 + low > tonumber(ARGV[2]) then
        return
    end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
