-- When a projector passed what: its position was at log_offset from passed_at to left_at. One row at most for each
-- tenth of a second and part; the last place is in projector_position. Rows go some time after left_at.
CREATE TABLE projector_trail (
    projector  TEXT   NOT NULL,
    part       TEXT   NOT NULL,
    log_offset BIGINT NOT NULL,
    passed_at  BIGINT NOT NULL,
    left_at    BIGINT NOT NULL,
    PRIMARY KEY (projector, part, log_offset)
) WITHOUT ROWID;
CREATE INDEX projector_trail_age ON projector_trail (left_at);

-- Events that were parked when the position passed them, and applied later. They go as the trail does.
CREATE TABLE applied_late (
    projector  TEXT   NOT NULL,
    part       TEXT   NOT NULL,
    log_offset BIGINT NOT NULL,
    applied_at BIGINT NOT NULL,
    PRIMARY KEY (projector, part, log_offset)
) WITHOUT ROWID;
CREATE INDEX applied_late_age ON applied_late (applied_at);

CREATE INDEX audit_event ON audit (event_id);
