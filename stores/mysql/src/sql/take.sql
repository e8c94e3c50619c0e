-- Takes a lease that is free, new or not, or takes it anew from an earlier term of the same process, in one statement that waits
-- for no lock: MariaDB's. Whatever else it meets is an error that changes nothing, and the procedure decides: of a server that
-- takes no writes and a session that does not commit by itself the name is null, of a lease that is not to be had the number of its
-- terms; neither may be.
-- The moment is that of the statement's begin, and so not after the row was found: what was free by it is free.
SET STATEMENT innodb_lock_wait_timeout = 0, lock_wait_timeout = 0 FOR
INSERT INTO tenure_leases (name, owner, incarnation, token, attempt, terms, ttl_ms, created_us, acquired_us, expires_us, note)
VALUES (IF({takes_no_writes} OR @@in_transaction OR @@SESSION.autocommit = 0, NULL, ?), ?, ?,
    GREATEST(1, {now_us} DIV 1000), ?, 1, ?, {now_us}, {now_us}, {now_us} + ? * 1000, ?)
ON DUPLICATE KEY UPDATE
    terms = IF(IF(incarnation = VALUES(incarnation), attempt < VALUES(attempt), released_us IS NOT NULL OR expires_us <= {now_us})
        AND token < {token_max} AND {understood}, LEAST(terms, 9223372036854775806) + 1, NULL),
    previous_owner = owner, previous_token = token,
    previous_end = IF(released_us IS NULL AND expires_us <= {now_us}, 'expired', 'released'),
    previous_us = COALESCE(released_us, LEAST(expires_us, {now_us})),
    owner = VALUES(owner), incarnation = VALUES(incarnation), token = GREATEST(token + 1, VALUES(token)),
    attempt = VALUES(attempt), ttl_ms = VALUES(ttl_ms), acquired_us = VALUES(acquired_us), renewed_us = NULL,
    expires_us = VALUES(expires_us), released_us = NULL, step_down_us = NULL, note = VALUES(note)
RETURNING token, terms, CAST(previous_owner AS BINARY), previous_token, CAST(previous_end AS BINARY), acquired_us - previous_us
