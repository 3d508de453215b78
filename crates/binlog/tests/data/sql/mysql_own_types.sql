SET sql_log_bin = 0;
CREATE TABLE special (
    id INT NOT NULL PRIMARY KEY, j JSON, lat VARCHAR(9) CHARACTER SET latin1, g GEOMETRY, p POINT, v VECTOR(3),
    cb BINARY(4), tags JSON, twice INT GENERATED ALWAYS AS (id * 2) VIRTUAL, kept INT GENERATED ALWAYS AS (id * 3) STORED,
    hidden INT INVISIBLE, last VARCHAR(9), INDEX (twice),
    INDEX many ((CAST(tags -> '$.n' AS UNSIGNED ARRAY))), INDEX texts ((CAST(tags -> '$.t' AS CHAR(20) ARRAY)))
);
SET sql_log_bin = 1;
INSERT INTO special (id, j, lat, g, p, v, cb, tags, last) VALUES
    (1, '{"a": [1, 2, "é"]}', 'é', ST_GeomFromText('LINESTRING(0 0, 1 1)'), ST_GeomFromText('POINT(1 2)'),
     STRING_TO_VECTOR('[1, -2.5, 3e10]'), X'01', '{"n": [3, 1, 2], "t": ["z"]}', 'last'),
    (2, 'null', NULL, NULL, NULL, NULL, NULL, '{"t": ["x", "y"]}', 'last'),
    (3, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL);
