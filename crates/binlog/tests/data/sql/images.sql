SET sql_log_bin = 0;
CREATE TABLE images (
    id INT UNSIGNED NOT NULL PRIMARY KEY, a INT DEFAULT 7, b VARCHAR(20), c TEXT, created TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
SET sql_log_bin = 1;
SET timestamp = 1700000000;
SET binlog_row_image = 'MINIMAL';
INSERT INTO images (id, b) VALUES (1, 'one');
UPDATE images SET b = NULL WHERE id = 1;
DELETE FROM images WHERE id = 1;
SET binlog_row_image = 'NOBLOB';
INSERT INTO images (id, b, c) VALUES (2, 'two', 'text');
UPDATE images SET a = 8 WHERE id = 2;
UPDATE images SET c = 'other' WHERE id = 2;
DELETE FROM images WHERE id = 2;
SET binlog_row_image = 'FULL';
INSERT INTO images VALUES (3, 1, 'three', 'x', '2023-01-01'), (4, 2, 'four', 'y', '2023-01-01');
UPDATE images SET a = a + 10;
DELETE FROM images;
