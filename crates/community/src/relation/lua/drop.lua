-- Drops what is kept under KEYS: it is read anew when it is next asked for.
return redis.call('UNLINK', unpack(KEYS))
