-- Facts: who follows whom. An ended follow stays as a row with rel_status 0, for its version.
-- created_at is when the pair first became active, updated_at when it last changed: for an active
-- row, since when the follow holds.
CREATE TABLE following (
    id           INTEGER PRIMARY KEY,
    from_user_id BIGINT NOT NULL,
    to_user_id   BIGINT NOT NULL,
    rel_status   BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    UNIQUE (from_user_id, to_user_id)
);
CREATE INDEX following_list ON following (from_user_id, rel_status, updated_at, to_user_id);

-- The mirror, kept by the projector "relation". An ended follow stays here as well: its version is
-- what keeps a late or repeated event from bringing the follow back.
CREATE TABLE follower (
    to_user_id   BIGINT NOT NULL,
    from_user_id BIGINT NOT NULL,
    rel_status   BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (to_user_id, from_user_id)
) WITHOUT ROWID;
CREATE INDEX follower_list ON follower (to_user_id, rel_status, updated_at, from_user_id);

-- Counters of a user, kept by the same projector. slots: followings, followers, posts, likes
-- received, favorites received, each a big-endian 32-bit number; checksum: CRC-32 of slots.
-- followers_offset: the last event that changed the user's follower list. A cached page of the list
-- is served only while this is what it was when the page was read; NULL serves none.
CREATE TABLE user_counter (
    user_id          BIGINT NOT NULL PRIMARY KEY,
    slots            BLOB   NOT NULL,
    checksum         BIGINT NOT NULL,
    followers_offset BIGINT
) WITHOUT ROWID;
