-- What is counted in the transactions of what it counts, whichever process does it: the metrics of every server tell it.
CREATE TABLE counted (
    name   VARBINARY(255) NOT NULL,
    label  VARBINARY(255) NOT NULL,
    number BIGINT         NOT NULL,
    PRIMARY KEY (name, label)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
