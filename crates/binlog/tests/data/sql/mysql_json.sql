SET sql_log_bin = 0;
CREATE TABLE documents (id INT NOT NULL PRIMARY KEY, j JSON, a INT, k JSON);
SET sql_log_bin = 1;
INSERT INTO documents VALUES
    (1, '{"": null, "t": true, "f": false, "bb": {"ä": [], "o": {}}, "text": "a\\"b\\\\c\\n\\u0001\\u007f 🚀"}', 1, '1'),
    (2, '[0, -1, 32767, -32768, 65535, 65536, 2147483647, -2147483648, 4294967295, 4294967296, 9223372036854775807, -9223372036854775808, 18446744073709551615]', 2, '2'),
    (3, '[0.1, 1.0, -1.5e300, 1e20, 123456789.25]', 3, '"s"'),
    (4, JSON_ARRAY(CAST('12.340' AS DECIMAL(10, 3)), CAST('-0.5' AS DECIMAL(30, 20)), CAST('2024-02-29' AS DATE), CAST('-12:34:56.5' AS TIME(6)), CAST('2024-02-29 23:59:59.123456' AS DATETIME(6)), CAST(X'00FF' AS BINARY)), 4, NULL),
    (5, CONCAT(REPEAT('[', 100), REPEAT(']', 100)), 5, NULL);
SET binlog_row_value_options = 'PARTIAL_JSON';
INSERT INTO documents VALUES (6, JSON_OBJECT('a', JSON_ARRAY(1, 2, 3), 'b', REPEAT('b', 100), 'c', 'c'), 6, JSON_OBJECT('pad', REPEAT('p', 100), 'x', 1));
UPDATE documents SET j = JSON_SET(j, '$.a[1]', 'two') WHERE id = 6;
UPDATE documents SET j = JSON_REMOVE(JSON_SET(j, '$.d', JSON_OBJECT('e', NULL)), '$.c'), a = 8 WHERE id = 6;
UPDATE documents SET k = JSON_REPLACE(k, '$.x', 22) WHERE id = 6;
UPDATE documents SET a = 9 WHERE id = 6;
