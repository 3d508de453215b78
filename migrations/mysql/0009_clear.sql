-- clear_to: the last offset after log_offset up to which the log was seen to hold no event, where offsets have gaps.
-- Whatever of it retention removes, nothing is missing. NULL before anybody looked.
ALTER TABLE projector_position ADD COLUMN clear_to BIGINT NULL;
