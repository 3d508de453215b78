-- Users. Rows are only ever added; `ordinal` numbers them densely from 0 in the order they were registered,
-- so that sets of users can be kept as bitmaps.
CREATE TABLE account (
    id         BIGINT        NOT NULL,
    handle     VARBINARY(64) NOT NULL,
    ordinal    BIGINT        NOT NULL,
    created_at BIGINT        NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT account_handle UNIQUE (handle),
    CONSTRAINT account_ordinal UNIQUE (ordinal)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row: whoever holds it registers users. Several processes may want to, and ordinals have no gaps.
CREATE TABLE account_turn (
    id BIGINT NOT NULL,
    PRIMARY KEY (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO account_turn (id) VALUES (0);
