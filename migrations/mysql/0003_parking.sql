-- What an operator does with the parking lot. state of a key: 0 it is retried at next_attempt_at, 1 dead,
-- 2 redriven: tried at next_attempt_at, and dead again at its first failure.
-- pace: events a second of a redriven key, 0 for as many as can be. died_at: when it last died.
-- tell_at: since when its death may be told to the webhook of alerts. NULL when there is nothing to tell.
ALTER TABLE parked_key
    ADD COLUMN pace    BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN died_at BIGINT NULL,
    ADD COLUMN tell_at BIGINT NULL,
    ADD INDEX parked_key_age (parked_at),
    ADD INDEX parked_key_tell (tell_at);
UPDATE parked_key SET died_at = parked_at, tell_at = parked_at WHERE state = 1;

-- Empty and NULL for what is no event.
ALTER TABLE parked_event
    ADD COLUMN event_type VARBINARY(255) NOT NULL DEFAULT '',
    ADD COLUMN event_id   VARBINARY(64)  NULL,
    ADD INDEX parked_event_id (event_id);
UPDATE parked_event SET event_type = COALESCE(LEFT(JSON_UNQUOTE(JSON_EXTRACT(event, '$.type')), 255), ''),
    event_id = LEFT(JSON_UNQUOTE(JSON_EXTRACT(event, '$.id')), 64) WHERE JSON_VALID(event);

-- Who did what when, and why: written in the transaction of the action. details is JSON.
CREATE TABLE audit (
    id         BIGINT         NOT NULL AUTO_INCREMENT,
    created_at BIGINT         NOT NULL,
    actor      VARBINARY(255) NOT NULL,
    action     VARBINARY(255) NOT NULL,
    projector  VARBINARY(255) NULL,
    event_key  VARBINARY(255) NULL,
    event_id   VARBINARY(64)  NULL,
    reason     MEDIUMTEXT     NULL,
    details    LONGTEXT       NOT NULL,
    PRIMARY KEY (id),
    INDEX audit_age (created_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
