-- What a cached page is checked by was the offset of the last event that changed the user's follower
-- list; offsets of a log with several parts do not rise from one event of a list to the next. Now it
-- is a number that rises with each change of the user's lists or counters.
ALTER TABLE user_counter RENAME COLUMN followers_offset TO changes;
