-- What an operator does with the parking lot. state of a key: 0 it is retried at next_attempt_at, 1 dead,
-- 2 redriven: tried at next_attempt_at, and dead again at its first failure.
-- pace: events a second of a redriven key, 0 for as many as can be. died_at: when it last died.
-- tell_at: since when its death may be told to the webhook of alerts; NULL when there is nothing to tell.
ALTER TABLE parked_key ADD COLUMN pace BIGINT NOT NULL DEFAULT 0;
ALTER TABLE parked_key ADD COLUMN died_at BIGINT;
ALTER TABLE parked_key ADD COLUMN tell_at BIGINT;
UPDATE parked_key SET died_at = parked_at, tell_at = parked_at WHERE state = 1;
CREATE INDEX parked_key_age ON parked_key (parked_at);
CREATE INDEX parked_key_tell ON parked_key (tell_at);

-- Empty and NULL for what is no event.
ALTER TABLE parked_event ADD COLUMN event_type TEXT NOT NULL DEFAULT '';
ALTER TABLE parked_event ADD COLUMN event_id TEXT;
UPDATE parked_event SET event_type = COALESCE(json_extract(event, '$.type'), ''), event_id = json_extract(event, '$.id')
    WHERE json_valid(event);
CREATE INDEX parked_event_id ON parked_event (event_id);

-- Who did what when, and why: written in the transaction of the action. details is JSON.
CREATE TABLE audit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at BIGINT NOT NULL,
    actor      TEXT   NOT NULL,
    action     TEXT   NOT NULL,
    projector  TEXT,
    event_key  TEXT,
    event_id   TEXT,
    reason     TEXT,
    details    TEXT   NOT NULL
);
CREATE INDEX audit_age ON audit (created_at);
