-- Events, written in the transaction of their fact. In SQLite one writer commits at a time, so the
-- order of seq is the order of commits, and the outbox is the log.
CREATE TABLE outbox (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id       BLOB    NOT NULL UNIQUE,
    event_type     TEXT    NOT NULL,
    schema_version BIGINT  NOT NULL,
    aggregate_type TEXT    NOT NULL,
    aggregate_id   TEXT    NOT NULL,
    event_key      TEXT    NOT NULL,
    version        BIGINT  NOT NULL,
    occurred_at    BIGINT  NOT NULL,
    payload        TEXT    NOT NULL,
    metadata       TEXT    NOT NULL
);

-- How far each projector has come: its effects and this row change in one transaction.
CREATE TABLE projector_position (
    projector  TEXT   NOT NULL,
    part       BIGINT NOT NULL,
    log_offset BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (projector, part)
) WITHOUT ROWID;

-- A key whose event failed. state: 0 it is retried at next_attempt_at, 1 dead.
CREATE TABLE parked_key (
    projector       TEXT   NOT NULL,
    event_key       TEXT   NOT NULL,
    state           BIGINT NOT NULL,
    attempts        BIGINT NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    error           TEXT   NOT NULL,
    parked_at       BIGINT NOT NULL,
    PRIMARY KEY (projector, event_key)
) WITHOUT ROWID;
CREATE INDEX parked_key_due ON parked_key (projector, state, next_attempt_at);

-- The failed event and all later ones of its key, in order. The copy keeps them when the outbox is pruned.
CREATE TABLE parked_event (
    projector   TEXT   NOT NULL,
    event_key   TEXT   NOT NULL,
    log_offset  BIGINT NOT NULL,
    occurred_at BIGINT NOT NULL,
    event       TEXT   NOT NULL,
    PRIMARY KEY (projector, event_key, log_offset)
) WITHOUT ROWID;
CREATE INDEX parked_event_age ON parked_event (projector, occurred_at);

-- The first answer to a command that carried an Idempotency-Key, stored in the command's transaction.
CREATE TABLE idempotency_key (
    scope       TEXT   NOT NULL,
    idem_key    TEXT   NOT NULL,
    fingerprint BLOB   NOT NULL,
    answer      TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (scope, idem_key)
) WITHOUT ROWID;
CREATE INDEX idempotency_key_age ON idempotency_key (created_at);
