-- Facts: who follows whom. An ended follow stays as a row with rel_status 0, for its version.
-- created_at is when the pair first became active, updated_at when it last changed: for an active
-- row, since when the follow holds.
CREATE TABLE following (
    id           BIGINT NOT NULL AUTO_INCREMENT,
    from_user_id BIGINT NOT NULL,
    to_user_id   BIGINT NOT NULL,
    rel_status   BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT following_pair UNIQUE (from_user_id, to_user_id),
    INDEX following_list (from_user_id, rel_status, updated_at, to_user_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The mirror, kept by the projector "relation". An ended follow stays here as well: its version is
-- what keeps a late or repeated event from bringing the follow back.
CREATE TABLE follower (
    to_user_id   BIGINT NOT NULL,
    from_user_id BIGINT NOT NULL,
    rel_status   BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (to_user_id, from_user_id),
    INDEX follower_list (to_user_id, rel_status, updated_at, from_user_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Counters of a user, kept by the same projector. Partitions of the log are applied side by side, so
-- each adds to the numbers where they are instead of writing what it has read. changes rises with
-- each change of the user's lists or numbers: a cached page is served only while this is what it was
-- when the page was read; NULL serves none.
CREATE TABLE user_counter (
    user_id            BIGINT NOT NULL,
    followings         BIGINT NOT NULL,
    followers          BIGINT NOT NULL,
    posts              BIGINT NOT NULL,
    likes_received     BIGINT NOT NULL,
    favorites_received BIGINT NOT NULL,
    changes            BIGINT,
    PRIMARY KEY (user_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
