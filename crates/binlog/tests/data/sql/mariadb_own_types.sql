SET sql_log_bin = 0;
CREATE TABLE special (
    id INT NOT NULL PRIMARY KEY, j JSON, u UUID, i6 INET6, i4 INET4, lat VARCHAR(9) CHARACTER SET latin1,
    g GEOMETRY, p POINT, cb BINARY(4), cv VARCHAR(300) COMPRESSED, ct TEXT COMPRESSED,
    wide CHAR(3) CHARACTER SET ucs2, hidden INT INVISIBLE
);
SET sql_log_bin = 1;
INSERT INTO special (id, j, u, i6, i4, lat, g, p, cb, cv, ct, wide) VALUES
    (1, '{"a": [1, 2, "é"]}', '6ccd780c-baba-1026-9564-5b8c65600000', '2001:db8::', '10.0.0.0', 'x',
     ST_GeomFromText('LINESTRING(0 0, 1 1)'), ST_GeomFromText('POINT(1 2)'), X'01',
     REPEAT('ab', 150), REPEAT('text ', 100), 'abc'),
    (2, NULL, '00000000-0000-0000-0000-000000000000', '::', '0.0.0.0', NULL, NULL, NULL, NULL, 'short', '', '');
SET column_compression_zlib_wrap = 1;
INSERT INTO special (id, cv) VALUES (3, REPEAT('ab', 150));
