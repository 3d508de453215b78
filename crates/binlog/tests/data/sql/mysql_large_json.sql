SET sql_log_bin = 0;
CREATE TABLE documents (id INT NOT NULL PRIMARY KEY, j JSON);
SET sql_log_bin = 1;
SET binlog_transaction_compression = ON;
INSERT INTO documents VALUES
    (1, CONCAT('{"long": "', REPEAT('x', 70000), '", "n": [100000, 70000], "o": {"small": -1}}'));
