-- Gives one lease back if it is of the very term, in one statement that waits for no lock: MariaDB's. It has changed a row, or
-- the procedure decides.
SET STATEMENT innodb_lock_wait_timeout = 0, lock_wait_timeout = 0 FOR
UPDATE tenure_leases SET released_us = {now_us}, expires_us = LEAST(expires_us, {now_us}), step_down_us = NULL
WHERE name = ? AND incarnation = ? AND token = ? AND attempt = ? AND released_us IS NULL AND {understood}
    AND ({takes_no_writes}) = 0 AND @@in_transaction = 0 AND @@SESSION.autocommit
