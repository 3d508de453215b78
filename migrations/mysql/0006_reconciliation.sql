-- Runs of the reconciliation, the last ones. active: 1 while one runs or repairs, else NULL, so that there is one
-- at a time. checks is JSON: what each check found. runner: the process that does it, until then; nobody before
-- one has taken it. tries: how many have.
CREATE TABLE reconciliation (
    seq             BIGINT         NOT NULL AUTO_INCREMENT,
    run_id          VARBINARY(64)  NOT NULL,
    active          BIGINT         NULL,
    state           VARBINARY(32)  NOT NULL,
    origin          VARBINARY(32)  NOT NULL,
    actor           VARBINARY(255) NULL,
    projector       VARBINARY(255) NULL,
    started_at      BIGINT         NOT NULL,
    finished_at     BIGINT         NULL,
    error           MEDIUMTEXT     NULL,
    checks          LONGTEXT       NOT NULL,
    differences     BIGINT         NOT NULL,
    lagging         BIGINT         NOT NULL,
    repair_state    VARBINARY(32)  NOT NULL,
    repair_actor    VARBINARY(255) NULL,
    repaired_events BIGINT         NOT NULL,
    repaired_at     BIGINT         NULL,
    repair_error    MEDIUMTEXT     NULL,
    runner          VARBINARY(64)  NOT NULL,
    runner_until    BIGINT         NOT NULL,
    tries           BIGINT         NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT reconciliation_run_id UNIQUE (run_id),
    CONSTRAINT reconciliation_active UNIQUE (active)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The differences that the last run found and a repair can put right. They go as they are repaired.
CREATE TABLE reconciliation_difference (
    run        BIGINT         NOT NULL,
    number     BIGINT         NOT NULL,
    projector  VARBINARY(255) NOT NULL,
    check_name VARBINARY(255) NOT NULL,
    kind       VARBINARY(255) NOT NULL,
    subject    TEXT           NOT NULL,
    expected   TEXT           NOT NULL,
    found      TEXT           NOT NULL,
    PRIMARY KEY (run, number)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
