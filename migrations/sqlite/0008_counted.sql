-- What is counted in the transactions of what it counts, whichever process does it: the metrics of every server tell it.
CREATE TABLE counted (
    name   TEXT   NOT NULL,
    label  TEXT   NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (name, label)
) WITHOUT ROWID;
