-- Users. Rows are only ever added; `ordinal` numbers them densely from 0 in the order they were registered,
-- so that sets of users can be kept as bitmaps.
CREATE TABLE account (
    id         INTEGER PRIMARY KEY,
    handle     TEXT    NOT NULL UNIQUE,
    ordinal    BIGINT  NOT NULL UNIQUE,
    created_at BIGINT  NOT NULL
);
