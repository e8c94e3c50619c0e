-- Leaves a wish for the holder of the very term; answers whether it stands there.
CREATE PROCEDURE IF NOT EXISTS tenure_ask_{version}(IN asked_name VARCHAR(255) {text}, IN asked_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE noted INT DEFAULT 0;
    DECLARE moment, l_token, l_ttl, l_expires, l_released, l_wish, p_token BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        SET SESSION innodb_lock_wait_timeout = lock_wait;
        RESIGNAL;
    END;
    SET SESSION innodb_lock_wait_timeout = {lock_wait_s};
    {begin}
    SELECT token, ttl_ms, expires_us, released_us, step_down_us, previous_token
        INTO l_token, l_ttl, l_expires, l_released, l_wish, p_token
        FROM tenure_leases WHERE name = asked_name FOR UPDATE;
    SET moment = {now_us};
    {primary_only}
    IF l_token = asked_token AND l_released IS NULL AND l_expires > moment AND {understood_as_read}
        AND {lasts_no_longer} THEN
        SET noted = 1;
        IF l_wish IS NULL THEN
            UPDATE tenure_leases SET step_down_us = moment WHERE name = asked_name;
        END IF;
    END IF;
    COMMIT AND NO CHAIN NO RELEASE;
    SET SESSION innodb_lock_wait_timeout = lock_wait;
    SELECT noted;
END
