SET sql_log_bin = 0;
CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a VARCHAR(9));
SET sql_log_bin = 1;
SET binlog_format = 'STATEMENT';
LOAD DATA LOCAL INFILE 'rows.txt' INTO TABLE t;
