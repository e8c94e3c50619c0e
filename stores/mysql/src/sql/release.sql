-- Gives leases back, each if it is of the very term, and answers for each request, in their order. `asked` is an array of
-- [name in hex, incarnation, token, attempt].
CREATE PROCEDURE IF NOT EXISTS tenure_release_{version}(IN asked JSON)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    {lock}
    SET moment = {now_us};
    {primary_only}
    IF only_name IS NOT NULL THEN
        UPDATE tenure_leases SET released_us = moment, expires_us = LEAST(expires_us, moment), step_down_us = NULL
        WHERE name = only_name AND incarnation = only_incarnation AND token = only_token AND attempt = only_attempt
            AND released_us IS NULL AND {understood};
        SELECT 1, CAST(IF(lease.incarnation = only_incarnation AND lease.token = only_token AND lease.attempt = only_attempt
                AND lease.released_us IS NOT NULL, 'vacated', 'lost') AS BINARY), {record}
            FROM tenure_leases lease WHERE lease.name = only_name;
    ELSE
        -- The key is null for what is not locked: a condition beside it would be looked at after the row was waited for.
        UPDATE {terms} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY)
            ON lease.name = IF(FIND_IN_SET(a.place, locked), {name_of_a}, NULL) SET
            lease.released_us = moment, lease.expires_us = LEAST(lease.expires_us, moment), lease.step_down_us = NULL
        WHERE lease.incarnation = a.incarnation AND lease.token = a.token
            AND lease.attempt = a.attempt AND lease.released_us IS NULL AND {understood_lease};
        SELECT a.place, CAST(CASE
                WHEN lease.name IS NULL THEN 'gone'
                WHEN NOT FIND_IN_SET(a.place, locked) THEN 'busy'
                WHEN lease.incarnation = a.incarnation AND lease.token = a.token AND lease.attempt = a.attempt
                    AND lease.released_us IS NOT NULL THEN 'vacated'
                ELSE 'lost' END AS BINARY), {record}
            FROM {terms} a LEFT JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a};
    END IF;
    -- An error of the commit comes after the rows: an answer counts when its last word has come.
    COMMIT AND NO CHAIN NO RELEASE;
    {restore}
END
