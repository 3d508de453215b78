SET sql_log_bin = 0;
CREATE TABLE texts (
    id INT NOT NULL, c10 CHAR(10), c255 CHAR(255), lat CHAR(200) CHARACTER SET latin1,
    v20 VARCHAR(20), v300 VARCHAR(300) CHARACTER SET latin1, b16 BINARY(16), vb VARBINARY(20),
    tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB,
    e ENUM('small', 'médium', 'large'), st SET('a', 'b', 'c', 'd'), PRIMARY KEY (v20 (5), id)
);
SET sql_log_bin = 1;
INSERT INTO texts VALUES
    (1, 'ten', 'été 🚀', 'café', '👩‍👩‍👧 ok', REPEAT('x', 300), X'00112233445566778899AABBCCDD0000', X'000100',
     'tiny', 'text\0nul', 'medium', 'long', X'00FF', X'DEADBEEF00', X'01', X'02', 'médium', 'a,c,d'),
    (2, '', '', '', '', '', X'', X'', '', '', '', '', '', '', '', '', 1, ''),
    (3, NULL, NULL, NULL, 'k', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 'a', 'b', 'c', 'd', 'e', X'00', X'00', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'large', 15);
