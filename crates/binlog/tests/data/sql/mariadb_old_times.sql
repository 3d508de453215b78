SET GLOBAL mysql56_temporal_format = OFF;
SET sql_log_bin = 0;
CREATE TABLE old_times (id INT NOT NULL PRIMARY KEY, t TIME, dt DATETIME, ts TIMESTAMP NULL);
SET sql_log_bin = 1;
SET time_zone = '+00:00';
INSERT INTO old_times VALUES
    (1, '-838:59:59', '2024-02-29 23:59:59', '2024-02-29 23:59:59'),
    (2, '12:34:56', '1000-01-02 03:04:05', NULL);
SET GLOBAL mysql56_temporal_format = ON;
