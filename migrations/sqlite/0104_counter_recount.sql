-- Facts: how often a user's counters were asked to be counted anew, since they were found to differ. It is what
-- the versions of these events come from.
CREATE TABLE counter_recount (
    user_id      BIGINT NOT NULL PRIMARY KEY,
    version      BIGINT NOT NULL,
    requested_at BIGINT NOT NULL
) WITHOUT ROWID;
