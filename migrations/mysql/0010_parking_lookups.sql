-- A key of a projector is looked up whatever part of the log it waits in, also in a lot of a hundred thousand keys.
ALTER TABLE parked_key ADD INDEX parked_key_key (projector, event_key);
ALTER TABLE parked_event ADD INDEX parked_event_key (projector, event_key, part, log_offset);

-- The oldest event of a projector is looked for, not that of a part.
ALTER TABLE parked_event ADD INDEX parked_event_oldest (projector, occurred_at);
ALTER TABLE parked_event DROP INDEX parked_event_age;
