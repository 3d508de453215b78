-- Keys and names are VARBINARY: compared byte for byte, as SQLite compares text. A `_bin` collation
-- would take 'a' and 'a ' for the same, and those that do not have other names on MySQL and MariaDB.

-- Events, written in the transaction of their fact. Writers of several keys work side by side, so the
-- order of seq is the order of commits within a key only; the binlog has the order of all. Texts are
-- texts, for whoever reads the binlog. There is no index on the key: the relay needs none, and each
-- would be one more page to write for each event.
CREATE TABLE outbox (
    seq            BIGINT       NOT NULL AUTO_INCREMENT,
    event_id       BINARY(16)   NOT NULL,
    event_type     VARCHAR(255) NOT NULL,
    schema_version BIGINT       NOT NULL,
    aggregate_type VARCHAR(255) NOT NULL,
    aggregate_id   VARCHAR(255) NOT NULL,
    event_key      VARCHAR(255) NOT NULL,
    version        BIGINT       NOT NULL,
    occurred_at    BIGINT       NOT NULL,
    payload        LONGTEXT     NOT NULL,
    metadata       LONGTEXT     NOT NULL,
    PRIMARY KEY (seq),
    CONSTRAINT outbox_event_id UNIQUE (event_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- How far each projector has come in each part of its log: its effects and this row change in one transaction.
CREATE TABLE projector_position (
    projector  VARBINARY(255) NOT NULL,
    part       VARBINARY(255) NOT NULL,
    log_offset BIGINT         NOT NULL,
    updated_at BIGINT         NOT NULL,
    PRIMARY KEY (projector, part)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A key whose event failed. state: 0 it is retried at next_attempt_at, 1 dead.
CREATE TABLE parked_key (
    projector       VARBINARY(255) NOT NULL,
    part            VARBINARY(255) NOT NULL,
    event_key       VARBINARY(255) NOT NULL,
    state           BIGINT         NOT NULL,
    attempts        BIGINT         NOT NULL,
    next_attempt_at BIGINT         NOT NULL,
    error           MEDIUMTEXT     NOT NULL,
    parked_at       BIGINT         NOT NULL,
    PRIMARY KEY (projector, part, event_key),
    INDEX parked_key_due (projector, part, state, next_attempt_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The failed event and all later ones of its key, in order. The copy keeps them when the outbox is pruned.
CREATE TABLE parked_event (
    projector   VARBINARY(255) NOT NULL,
    part        VARBINARY(255) NOT NULL,
    event_key   VARBINARY(255) NOT NULL,
    log_offset  BIGINT         NOT NULL,
    occurred_at BIGINT         NOT NULL,
    event       LONGTEXT       NOT NULL,
    PRIMARY KEY (projector, part, event_key, log_offset),
    INDEX parked_event_age (projector, part, occurred_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The first answer to a command that carried an Idempotency-Key, stored in the command's transaction.
CREATE TABLE idempotency_key (
    scope       VARBINARY(255) NOT NULL,
    idem_key    VARBINARY(255) NOT NULL,
    fingerprint VARBINARY(64)  NOT NULL,
    answer      LONGTEXT       NOT NULL,
    created_at  BIGINT         NOT NULL,
    PRIMARY KEY (scope, idem_key),
    INDEX idempotency_key_age (created_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
