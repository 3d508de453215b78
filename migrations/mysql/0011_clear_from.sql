-- clear_from: the position behind which the log was seen to hold no event up to clear_to. Of another position, such as
-- one that was set back by hand, it says nothing.
ALTER TABLE projector_position ADD COLUMN clear_from BIGINT NULL;
