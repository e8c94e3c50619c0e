-- Raises a mark for an operator: above itself, above `asked_above`, above what its lease was granted, and above the clock.
-- Where the highest of the others is counted, and no time of a clock, without the clock: no later term would ever get there.
-- Of leases elsewhere as in `tenure_claim`.
CREATE PROCEDURE IF NOT EXISTS tenure_bump_{version}(
    IN asked_resource VARCHAR(255) {text}, IN asked_above BIGINT, IN asked_lease VARCHAR(255) {text}
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE moment, m_token, granted, highest BIGINT;
    DECLARE m_lease VARCHAR(255) {text};
    DECLARE lease_store VARCHAR(20) {text} DEFAULT {lease_store};
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        SET SESSION innodb_lock_wait_timeout = lock_wait;
        RESIGNAL;
    END;
    SET SESSION innodb_lock_wait_timeout = {claim_wait_s}, @tenure_lease_store = NULL;
    {begin}
    SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource FOR UPDATE;
    SELECT token INTO granted FROM tenure_leases WHERE name = COALESCE(asked_lease, m_lease) AND token <= {token_max}
        AND lease_store <> '{elsewhere}';
    SET moment = {now_us};
    {primary_only}
    SET highest = GREATEST(COALESCE(m_token, 0), COALESCE(granted, 0), COALESCE(asked_above, 0));
    IF highest = 0 OR highest >= 1000000000000 THEN
        SET highest = GREATEST(highest, moment DIV 1000, 1);
    END IF;
    IF highest >= {token_max} THEN
        SET highest = NULL;
    ELSEIF m_token IS NULL THEN
        SET highest = highest + 1;
        INSERT INTO tenure_fences (resource, lease, token, claimed_us, bumped_token)
            VALUES (asked_resource, asked_lease, highest, moment, highest);
    ELSE
        SET highest = highest + 1;
        UPDATE tenure_fences SET lease = COALESCE(asked_lease, m_lease), token = highest, claimed_us = moment,
            previous_token = m_token, bumped_token = highest WHERE resource = asked_resource;
    END IF;
    COMMIT AND NO CHAIN NO RELEASE;
    SET SESSION innodb_lock_wait_timeout = lock_wait;
    SELECT highest;
END
