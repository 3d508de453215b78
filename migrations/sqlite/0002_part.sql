-- A log may have several parts (partitions of topics), and a projector a position and a parking lot on
-- each. Embedded there is one: outbox/0.
CREATE TABLE new_position (
    projector  TEXT   NOT NULL,
    part       TEXT   NOT NULL,
    log_offset BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (projector, part)
) WITHOUT ROWID;
INSERT INTO new_position SELECT projector, 'outbox/0', log_offset, updated_at FROM projector_position;
DROP TABLE projector_position;
ALTER TABLE new_position RENAME TO projector_position;

CREATE TABLE new_key (
    projector       TEXT   NOT NULL,
    part            TEXT   NOT NULL,
    event_key       TEXT   NOT NULL,
    state           BIGINT NOT NULL,
    attempts        BIGINT NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    error           TEXT   NOT NULL,
    parked_at       BIGINT NOT NULL,
    PRIMARY KEY (projector, part, event_key)
) WITHOUT ROWID;
INSERT INTO new_key
    SELECT projector, 'outbox/0', event_key, state, attempts, next_attempt_at, error, parked_at FROM parked_key;
DROP TABLE parked_key;
ALTER TABLE new_key RENAME TO parked_key;
CREATE INDEX parked_key_due ON parked_key (projector, part, state, next_attempt_at);

CREATE TABLE new_event (
    projector   TEXT   NOT NULL,
    part        TEXT   NOT NULL,
    event_key   TEXT   NOT NULL,
    log_offset  BIGINT NOT NULL,
    occurred_at BIGINT NOT NULL,
    event       TEXT   NOT NULL,
    PRIMARY KEY (projector, part, event_key, log_offset)
) WITHOUT ROWID;
INSERT INTO new_event
    SELECT projector, 'outbox/0', event_key, log_offset, occurred_at, event FROM parked_event;
DROP TABLE parked_event;
ALTER TABLE new_event RENAME TO parked_event;
CREATE INDEX parked_event_age ON parked_event (projector, occurred_at);
