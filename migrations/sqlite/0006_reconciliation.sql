-- Runs of the reconciliation, the last ones. active: 1 while one runs or repairs, else NULL, so that there is one
-- at a time. checks is JSON: what each check found. runner: the process that does it, until then; nobody before
-- one has taken it. tries: how many have.
CREATE TABLE reconciliation (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id          TEXT   NOT NULL UNIQUE,
    active          BIGINT UNIQUE,
    state           TEXT   NOT NULL,
    origin          TEXT   NOT NULL,
    actor           TEXT,
    projector       TEXT,
    started_at      BIGINT NOT NULL,
    finished_at     BIGINT,
    error           TEXT,
    checks          TEXT   NOT NULL,
    differences     BIGINT NOT NULL,
    lagging         BIGINT NOT NULL,
    repair_state    TEXT   NOT NULL,
    repair_actor    TEXT,
    repaired_events BIGINT NOT NULL,
    repaired_at     BIGINT,
    repair_error    TEXT,
    runner          TEXT   NOT NULL,
    runner_until    BIGINT NOT NULL,
    tries           BIGINT NOT NULL
);

-- The differences that the last run found and a repair can put right. They go as they are repaired.
CREATE TABLE reconciliation_difference (
    run        BIGINT NOT NULL,
    number     BIGINT NOT NULL,
    projector  TEXT   NOT NULL,
    check_name TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    subject    TEXT   NOT NULL,
    expected   TEXT   NOT NULL,
    found      TEXT   NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
