SET sql_log_bin = 0;
CREATE TABLE first_table (id INT NOT NULL PRIMARY KEY);
CREATE TABLE second_table (id INT NOT NULL PRIMARY KEY, text VARCHAR(9));
CREATE TRIGGER copies AFTER INSERT ON first_table FOR EACH ROW INSERT INTO second_table VALUES (NEW.id, 'copy');
SET sql_log_bin = 1;
INSERT INTO first_table VALUES (1), (2);
