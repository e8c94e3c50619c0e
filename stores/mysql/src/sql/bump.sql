-- Raises a mark for an operator: above itself, above `asked_above`, above what its lease was granted, above the clock.
CREATE PROCEDURE IF NOT EXISTS tenure_bump_{version}(
    IN asked_resource VARCHAR(255) {text}, IN asked_above BIGINT, IN asked_lease VARCHAR(255) {text}
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE moment, m_token, granted, highest BIGINT;
    DECLARE m_lease VARCHAR(255) {text};
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        SET SESSION innodb_lock_wait_timeout = lock_wait;
        RESIGNAL;
    END;
    SET SESSION innodb_lock_wait_timeout = {claim_wait_s};
    {begin}
    SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource FOR UPDATE;
    SELECT token INTO granted FROM tenure_leases WHERE name = COALESCE(asked_lease, m_lease);
    SET moment = {now_us};
    {primary_only}
    SET highest = GREATEST(COALESCE(m_token, 1), COALESCE(granted, 1), COALESCE(asked_above, 1), moment DIV 1000);
    IF highest = 9223372036854775807 THEN
        SET highest = NULL;
    ELSEIF m_token IS NULL THEN
        SET highest = highest + 1;
        INSERT INTO tenure_fences (resource, lease, token, claimed_us) VALUES (asked_resource, asked_lease, highest, moment);
    ELSE
        SET highest = highest + 1;
        UPDATE tenure_fences SET lease = COALESCE(asked_lease, m_lease), token = highest, claimed_us = moment,
            previous_token = m_token WHERE resource = asked_resource;
    END IF;
    COMMIT;
    SET SESSION innodb_lock_wait_timeout = lock_wait;
    SELECT highest;
END
