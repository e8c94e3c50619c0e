-- The marks as set-ups made them before a bumped one was known to be nobody's: put in the place of those of a set-up.
ALTER TABLE tenure_fences DROP COLUMN bumped_token;

CREATE OR REPLACE PROCEDURE tenure_claim_1(
    IN asked_resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN asked_lease VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN asked_token BIGINT
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE round, taken, raised, decided INT DEFAULT 0;
    DECLARE moment, m_token, granted BIGINT;
    DECLARE m_lease VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        SET SESSION innodb_lock_wait_timeout = lock_wait;
        RESIGNAL;
    END;
    SET SESSION innodb_lock_wait_timeout = 4;
    WHILE NOT decided AND round < 3 DO
        SET round = round + 1, taken = 0, m_token = NULL, m_lease = NULL, granted = NULL;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION;
        SELECT token INTO granted FROM tenure_leases WHERE name = asked_lease;
        SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource;
        SET moment = TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6));
        IF CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') THEN SIGNAL SQLSTATE 'TN010' SET MESSAGE_TEXT = 'the server takes no writes'; END IF;
        IF m_lease <> asked_lease OR m_token > asked_token OR m_token = asked_token AND m_lease = asked_lease THEN
            -- Refused, or held already: either way without a lock.
            SET decided = 1;
        ELSE
            SET m_token = NULL, m_lease = NULL;
            SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource FOR UPDATE;
            SET moment = TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6));
            IF CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') THEN SIGNAL SQLSTATE 'TN010' SET MESSAGE_TEXT = 'the server takes no writes'; END IF;
            IF asked_token > COALESCE(granted, GREATEST(moment DIV 1000, COALESCE(m_token, 0)) + 86400000) THEN
                SET decided = 1;
            ELSEIF m_token IS NULL THEN
                BEGIN
                    DECLARE CONTINUE HANDLER FOR 1062 SET taken = 1;
                    INSERT INTO tenure_fences (resource, lease, token, claimed_us)
                        VALUES (asked_resource, asked_lease, asked_token, moment);
                END;
                IF taken THEN
                    ROLLBACK;
                ELSE
                    SET raised = 1, decided = 1;
                END IF;
            ELSE
                IF COALESCE(m_lease, asked_lease) = asked_lease
                    AND (m_token < asked_token OR m_token = asked_token AND m_lease IS NULL) THEN
                    UPDATE tenure_fences SET lease = asked_lease, token = asked_token, claimed_us = moment, previous_token = m_token
                        WHERE resource = asked_resource;
                    SET raised = 1;
                END IF;
                SET decided = 1;
            END IF;
        END IF;
    END WHILE;
    COMMIT;
    SET SESSION innodb_lock_wait_timeout = lock_wait;
    IF NOT decided THEN
        SIGNAL SQLSTATE 'TN009' SET MESSAGE_TEXT = 'the mark came and went under the claim';
    END IF;
    SELECT m_lease, m_token, granted, moment DIV 1000, raised;
END;

CREATE OR REPLACE PROCEDURE tenure_bump_1(
    IN asked_resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN asked_above BIGINT, IN asked_lease VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE moment, m_token, granted, highest BIGINT;
    DECLARE m_lease VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        SET SESSION innodb_lock_wait_timeout = lock_wait;
        RESIGNAL;
    END;
    SET SESSION innodb_lock_wait_timeout = 4;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION;
    SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource FOR UPDATE;
    SELECT token INTO granted FROM tenure_leases WHERE name = COALESCE(asked_lease, m_lease);
    SET moment = TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6));
    IF CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') THEN SIGNAL SQLSTATE 'TN010' SET MESSAGE_TEXT = 'the server takes no writes'; END IF;
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
END;

CREATE OR REPLACE PROCEDURE tenure_enter_1(
    IN asked_resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN asked_lease VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN asked_token BIGINT
)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE m_token BIGINT;
    DECLARE m_lease VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    SET @tenure_term = NULL;
    SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource;
    IF m_lease = asked_lease AND m_token = asked_token THEN
        -- Shared: transactions of one term run side by side, and a claim waits for all of them.
        SET m_lease = NULL, m_token = NULL;
        SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource LOCK IN SHARE MODE;
    END IF;
    IF m_lease <> asked_lease THEN
        SIGNAL SQLSTATE 'TN002' SET MESSAGE_TEXT = 'refused: the resource belongs to another lease; give each lease its own';
    ELSEIF m_token > asked_token THEN
        SIGNAL SQLSTATE 'TN001' SET MESSAGE_TEXT = 'refused: the token is stale, a later term has claimed; stop this work';
    ELSEIF m_lease IS NULL OR m_token <> asked_token THEN
        SIGNAL SQLSTATE 'TN003'
            SET MESSAGE_TEXT = 'refused: the token has not claimed, or not before this transaction began to read';
    END IF;
    SET @tenure_term = CONCAT(asked_token, ' ', asked_lease);
END;

CREATE OR REPLACE PROCEDURE tenure_admit_1(IN asked_resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE m_token BIGINT;
    DECLARE asked_token DECIMAL(20, 0);
    DECLARE m_lease, asked_lease VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE term VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT COALESCE(CAST(@tenure_term AS CHAR(300) CHARACTER SET utf8mb4), '');
    IF term NOT REGEXP '^[0-9]{1,19} .' THEN
        SIGNAL SQLSTATE 'TN003'
            SET MESSAGE_TEXT = 'refused: the table is written only by the term that holds its resource; enter it first';
    END IF;
    SET asked_token = CAST(SUBSTRING_INDEX(term, ' ', 1) AS DECIMAL(20, 0));
    SET asked_lease = LEFT(SUBSTRING(term, LOCATE(' ', term) + 1), 255);
    SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource;
    IF m_lease = asked_lease AND m_token = asked_token THEN
        -- Shared: transactions of one term run side by side, and a claim waits for all of them.
        SET m_lease = NULL, m_token = NULL;
        SELECT lease, token INTO m_lease, m_token FROM tenure_fences WHERE resource = asked_resource LOCK IN SHARE MODE;
    END IF;
    IF m_lease <> asked_lease THEN
        SIGNAL SQLSTATE 'TN002' SET MESSAGE_TEXT = 'refused: the resource belongs to another lease; give each lease its own';
    ELSEIF m_token > asked_token THEN
        SIGNAL SQLSTATE 'TN001' SET MESSAGE_TEXT = 'refused: the token is stale, a later term has claimed; stop this work';
    ELSEIF m_lease IS NULL OR m_token <> asked_token THEN
        SIGNAL SQLSTATE 'TN003'
            SET MESSAGE_TEXT = 'refused: the token has not claimed, or not before this transaction began to read';
    END IF;
END;
