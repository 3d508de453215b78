-- Several generations of the projection may stand side by side: one is read while the next is built.
-- What there is belongs to the first; whoever writes from now on says which one he means.
ALTER TABLE follower
    ADD COLUMN generation BIGINT NOT NULL DEFAULT 1 FIRST,
    DROP PRIMARY KEY,
    ADD PRIMARY KEY (generation, to_user_id, from_user_id),
    DROP INDEX follower_list,
    ADD INDEX follower_list (generation, to_user_id, rel_status, updated_at, from_user_id);
ALTER TABLE follower ALTER COLUMN generation DROP DEFAULT;

ALTER TABLE user_counter
    ADD COLUMN generation BIGINT NOT NULL DEFAULT 1 FIRST,
    DROP PRIMARY KEY,
    ADD PRIMARY KEY (generation, user_id);
ALTER TABLE user_counter ALTER COLUMN generation DROP DEFAULT;

-- Readers ask it in each statement, so it is there from the beginning.
INSERT IGNORE INTO projector_generation (projector, live, latest) VALUES ('relation', 1, 1);
