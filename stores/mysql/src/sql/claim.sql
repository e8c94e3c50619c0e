-- Raises the mark of a resource if the rules of a claim say so, and answers what they were judged by: the row as it was
-- found under its lock (its lease null where the mark is this lease's and nobody has claimed it), the highest token that the
-- lease has been granted (null where the lease is not kept here), the clock in ms, and whether the mark was raised. A caller
-- whose leases are elsewhere has set @tenure_lease_store: a record of that name says nothing of their tokens.
CREATE PROCEDURE IF NOT EXISTS tenure_claim_{version}(
    IN asked_resource VARCHAR(255) {text}, IN asked_lease VARCHAR(255) {text}, IN asked_token BIGINT
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE round, taken, raised, decided INT DEFAULT 0;
    DECLARE moment, m_token, granted BIGINT;
    DECLARE m_lease VARCHAR(255) {text};
    DECLARE lease_store VARCHAR(20) {text} DEFAULT {lease_store};
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        SET SESSION innodb_lock_wait_timeout = lock_wait;
        RESIGNAL;
    END;
    SET SESSION innodb_lock_wait_timeout = {claim_wait_s}, @tenure_lease_store = NULL;
    WHILE NOT decided AND round < 3 DO
        SET round = round + 1, taken = 0, m_token = NULL, m_lease = NULL, granted = NULL;
        {begin}
        SELECT token INTO granted FROM tenure_leases WHERE name = asked_lease AND token <= {token_max}
            AND lease_store <> '{elsewhere}';
        -- One that an operator has raised, its own number has not claimed either.
        SELECT IF(lease = asked_lease AND bumped_token = token, NULL, lease), token INTO m_lease, m_token
            FROM tenure_fences WHERE resource = asked_resource;
        SET moment = {now_us};
        {primary_only}
        IF m_lease <> asked_lease OR m_token > asked_token OR m_token = asked_token AND m_lease = asked_lease THEN
            -- Refused, or held already: either way without a lock.
            SET decided = 1;
        ELSE
            SET m_token = NULL, m_lease = NULL;
            SELECT IF(lease = asked_lease AND bumped_token = token, NULL, lease), token INTO m_lease, m_token
                FROM tenure_fences WHERE resource = asked_resource FOR UPDATE;
            SET moment = {now_us};
            {primary_only}
            -- Where there is no mark, one may have stood here that was removed: the lease tells that the term is over.
            IF asked_token > COALESCE(granted, GREATEST(moment DIV 1000, COALESCE(m_token, 0)) + {day_ms})
                OR m_token IS NULL AND asked_token < granted THEN
                SET decided = 1;
            ELSEIF m_token IS NULL THEN
                BEGIN
                    DECLARE CONTINUE HANDLER FOR 1062 SET taken = 1;
                    INSERT INTO tenure_fences (resource, lease, token, claimed_us)
                        VALUES (asked_resource, asked_lease, asked_token, moment);
                END;
                IF taken THEN
                    ROLLBACK AND NO CHAIN NO RELEASE;
                ELSE
                    SET raised = 1, decided = 1;
                END IF;
            ELSE
                IF COALESCE(m_lease, asked_lease) = asked_lease
                    AND (m_token < asked_token OR m_token = asked_token AND m_lease IS NULL) THEN
                    UPDATE tenure_fences SET lease = asked_lease, token = asked_token, claimed_us = moment, previous_token = m_token,
                        bumped_token = NULL WHERE resource = asked_resource;
                    SET raised = 1;
                END IF;
                SET decided = 1;
            END IF;
        END IF;
    END WHILE;
    COMMIT AND NO CHAIN NO RELEASE;
    SET SESSION innodb_lock_wait_timeout = lock_wait;
    IF NOT decided THEN
        SIGNAL SQLSTATE '{busy}' SET MESSAGE_TEXT = 'the mark came and went under the claim';
    END IF;
    SELECT CAST(m_lease AS BINARY), m_token, granted, moment DIV 1000, raised;
END
