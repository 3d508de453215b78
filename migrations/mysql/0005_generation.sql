-- Which generation of a projector's projection is read, and the highest number that was ever given to one:
-- numbers are not used again. The switch to another generation changes `live` here, and nothing else.
CREATE TABLE projector_generation (
    projector VARBINARY(255) NOT NULL,
    live      BIGINT         NOT NULL,
    latest    BIGINT         NOT NULL,
    PRIMARY KEY (projector)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The rebuild of a projector that is under way, or the last one. wish and plan are JSON: what was asked,
-- and where the log stood when it began. seed_cursor: up to where facts were read. removes: the
-- generation whose rows are being removed, or 0. foreman: the process that leads it, until then.
CREATE TABLE rebuild (
    projector         VARBINARY(255) NOT NULL,
    generation        BIGINT         NOT NULL,
    state             VARBINARY(32)  NOT NULL,
    is_paused         BIGINT         NOT NULL,
    is_held           BIGINT         NOT NULL,
    is_forced         BIGINT         NOT NULL,
    events_per_second BIGINT         NOT NULL,
    wish              MEDIUMTEXT     NOT NULL,
    plan              MEDIUMTEXT     NOT NULL,
    seed_cursor       VARCHAR(1024),
    seeded            BIGINT         NOT NULL,
    seed_rows         BIGINT,
    removes           BIGINT         NOT NULL,
    removed           BIGINT         NOT NULL,
    report            MEDIUMTEXT     NOT NULL,
    foreman           VARBINARY(64)  NOT NULL,
    foreman_until     BIGINT         NOT NULL,
    started_at        BIGINT         NOT NULL,
    updated_at        BIGINT         NOT NULL,
    finished_at       BIGINT,
    PRIMARY KEY (projector)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
