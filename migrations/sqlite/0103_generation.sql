-- Several generations of the projection may stand side by side: one is read while the next is built.
-- What there is belongs to the first.
CREATE TABLE new_follower (
    generation   BIGINT NOT NULL,
    to_user_id   BIGINT NOT NULL,
    from_user_id BIGINT NOT NULL,
    rel_status   BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (generation, to_user_id, from_user_id)
) WITHOUT ROWID;
INSERT INTO new_follower
    SELECT 1, to_user_id, from_user_id, rel_status, version, created_at, updated_at FROM follower
    ORDER BY to_user_id, from_user_id;
DROP TABLE follower;
ALTER TABLE new_follower RENAME TO follower;
CREATE INDEX follower_list ON follower (generation, to_user_id, rel_status, updated_at, from_user_id);

CREATE TABLE new_counter (
    generation BIGINT NOT NULL,
    user_id    BIGINT NOT NULL,
    slots      BLOB   NOT NULL,
    checksum   BIGINT NOT NULL,
    changes    BIGINT,
    PRIMARY KEY (generation, user_id)
) WITHOUT ROWID;
INSERT INTO new_counter SELECT 1, user_id, slots, checksum, changes FROM user_counter ORDER BY user_id;
DROP TABLE user_counter;
ALTER TABLE new_counter RENAME TO user_counter;

-- Readers ask it in each statement, so it is there from the beginning.
INSERT INTO projector_generation (projector, live, latest) VALUES ('relation', 1, 1);
