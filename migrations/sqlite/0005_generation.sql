-- Which generation of a projector's projection is read, and the highest number that was ever given to one:
-- numbers are not used again. The switch to another generation changes `live` here, and nothing else.
CREATE TABLE projector_generation (
    projector TEXT   NOT NULL PRIMARY KEY,
    live      BIGINT NOT NULL,
    latest    BIGINT NOT NULL
) WITHOUT ROWID;

-- The rebuild of a projector that is under way, or the last one. wish and plan are JSON: what was asked,
-- and where the log stood when it began. seed_cursor: up to where facts were read. removes: the
-- generation whose rows are being removed, or 0. foreman: the process that leads it, until then.
CREATE TABLE rebuild (
    projector         TEXT   NOT NULL PRIMARY KEY,
    generation        BIGINT NOT NULL,
    state             TEXT   NOT NULL,
    is_paused         BIGINT NOT NULL,
    is_held           BIGINT NOT NULL,
    is_forced         BIGINT NOT NULL,
    events_per_second BIGINT NOT NULL,
    wish              TEXT   NOT NULL,
    plan              TEXT   NOT NULL,
    seed_cursor       TEXT,
    seeded            BIGINT NOT NULL,
    seed_rows         BIGINT,
    removes           BIGINT NOT NULL,
    removed           BIGINT NOT NULL,
    report            TEXT   NOT NULL,
    foreman           TEXT   NOT NULL,
    foreman_until     BIGINT NOT NULL,
    started_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    finished_at       BIGINT
) WITHOUT ROWID;
