-- Before facts are committed: the lists that are read from them go, their loads are ended, and no new load
-- begins while the fence stands, since it might read what was there before the commit.
--
-- KEYS     of each list: the list, its load, its fence
-- ARGV[1]  the time a fence stands, in milliseconds
for at = 1, #KEYS, 3 do
    redis.call('UNLINK', KEYS[at], KEYS[at + 1])
    redis.call('SET', KEYS[at + 2], '', 'PX', ARGV[1])
end
