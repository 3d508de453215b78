-- When a projector passed what: its position was at log_offset from passed_at to left_at. One row at most for each
-- tenth of a second and part. The last place is in projector_position. Rows go some time after left_at.
CREATE TABLE projector_trail (
    projector  VARBINARY(255) NOT NULL,
    part       VARBINARY(255) NOT NULL,
    log_offset BIGINT         NOT NULL,
    passed_at  BIGINT         NOT NULL,
    left_at    BIGINT         NOT NULL,
    PRIMARY KEY (projector, part, log_offset),
    INDEX projector_trail_age (left_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Events that were parked when the position passed them, and applied later. They go as the trail does.
CREATE TABLE applied_late (
    projector  VARBINARY(255) NOT NULL,
    part       VARBINARY(255) NOT NULL,
    log_offset BIGINT         NOT NULL,
    applied_at BIGINT         NOT NULL,
    PRIMARY KEY (projector, part, log_offset),
    INDEX applied_late_age (applied_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

ALTER TABLE audit ADD INDEX audit_event (event_id);
