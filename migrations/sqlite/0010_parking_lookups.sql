-- A key of a projector is looked up whatever part of the log it waits in, also in a lot of a hundred thousand keys.
CREATE INDEX parked_key_key ON parked_key (projector, event_key);
CREATE INDEX parked_event_key ON parked_event (projector, event_key, part, log_offset);

-- Nearly every key has nothing to tell.
DROP INDEX parked_key_tell;
CREATE INDEX parked_key_untold ON parked_key (tell_at) WHERE tell_at IS NOT NULL;
