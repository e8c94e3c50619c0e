-- Takes a lease if it is free.
CREATE PROCEDURE IF NOT EXISTS tenure_acquire_{version}(
    IN asked_name VARCHAR(255) {text}, IN asked_owner VARCHAR(253) {text}, IN asked_incarnation VARCHAR(32) {text},
    IN asked_attempt BIGINT, IN asked_ttl_ms BIGINT, IN asked_note VARCHAR(1024) {text}
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE round, there, mine, held, taken INT DEFAULT 0;
    DECLARE verdict VARCHAR(16) {text};
    DECLARE waits_us, pause_us BIGINT;
    DECLARE waited_us BIGINT DEFAULT 0;
    DECLARE moment, l_token, l_attempt, l_terms, l_ttl, l_acquired, l_renewed, l_expires, l_released, l_wish, p_token, p_us BIGINT;
    DECLARE l_owner, p_owner VARCHAR(253) {text};
    DECLARE l_incarnation VARCHAR(32) {text};
    DECLARE l_note VARCHAR(1024) {text};
    DECLARE p_end VARCHAR(8) {text};
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        SET SESSION innodb_lock_wait_timeout = lock_wait;
        RESIGNAL;
    END;
    -- How long the row may be waited for: of a short ttl a twentieth. Who asks gives a request a tenth, and what was taken after
    -- it was given up would be nobody's.
    SET waits_us = LEAST({lock_wait_s} * 1000000, asked_ttl_ms * 50);
    WHILE verdict IS NULL AND round < 3 DO
        SET taken = 0, l_token = NULL;
        -- A session that does not commit by itself would see for ever what it saw first.
        COMMIT AND NO CHAIN NO RELEASE;
        -- Whoever only finds that somebody else holds the lease locks nothing and writes nothing.
        SELECT owner, incarnation, token, attempt, terms, ttl_ms, acquired_us, renewed_us, expires_us, released_us, step_down_us,
                note, previous_owner, previous_token, previous_end, previous_us
            INTO l_owner, l_incarnation, l_token, l_attempt, l_terms, l_ttl, l_acquired, l_renewed, l_expires, l_released, l_wish,
                l_note, p_owner, p_token, p_end, p_us
            FROM tenure_leases WHERE name = asked_name;
        SET moment = {now_us}, there = l_token IS NOT NULL;
        IF there AND l_incarnation <> asked_incarnation AND l_released IS NULL AND l_expires > moment THEN
            {primary_only}
            SET verdict = 'held';
        ELSE
            SET l_token = NULL;
            SET SESSION innodb_lock_wait_timeout = 1;
            {begin}
            SELECT owner, incarnation, token, attempt, terms, ttl_ms, acquired_us, renewed_us, expires_us, released_us,
                    step_down_us, note, previous_owner, previous_token, previous_end, previous_us
                INTO l_owner, l_incarnation, l_token, l_attempt, l_terms, l_ttl, l_acquired, l_renewed, l_expires, l_released,
                    l_wish, l_note, p_owner, p_token, p_end, p_us
                FROM tenure_leases WHERE name = asked_name FOR UPDATE SKIP LOCKED;
            -- Read in a statement of its own, after the row could be locked: before it, a lease could look expired that was
            -- renewed meanwhile. And read once: every part of the decision is of one moment.
            SET moment = {now_us};
            {primary_only}
            SET mine = l_incarnation = asked_incarnation, held = l_released IS NULL AND l_expires > moment;
            IF l_token IS NULL AND there AND waited_us < waits_us THEN
                -- Looked at again and again, as InnoDB waits for whole seconds. Who has the row may be taking the lease.
                SET pause_us = LEAST(2000 + waited_us DIV 4, 20000, waits_us - waited_us), waited_us = waited_us + pause_us;
                DO SLEEP(pause_us / 1000000);
            ELSEIF l_token IS NULL AND there THEN
                SET verdict = 'busy';
            ELSEIF l_token IS NULL THEN
                SET round = round + 1;
                BEGIN
                    DECLARE CONTINUE HANDLER FOR 1062 SET taken = 1;
                    INSERT INTO tenure_leases (name, owner, incarnation, token, attempt, terms, ttl_ms, created_us, acquired_us,
                            expires_us, note)
                        VALUES (asked_name, asked_owner, asked_incarnation, GREATEST(1, moment DIV 1000), asked_attempt, 1,
                            asked_ttl_ms, moment, moment, moment + asked_ttl_ms * 1000, asked_note);
                END;
                IF taken THEN
                    -- Ended first: whoever met a new row holds a lock on it that two could not both make stronger.
                    ROLLBACK AND NO CHAIN NO RELEASE;
                ELSE
                    SET verdict = 'granted', l_token = GREATEST(1, moment DIV 1000), l_terms = 1, p_token = NULL;
                END IF;
            ELSEIF NOT {understood_as_read} THEN
                SET verdict = 'unreadable';
            ELSEIF mine AND (l_attempt > asked_attempt OR l_attempt = asked_attempt AND l_released IS NOT NULL) THEN
                SET verdict = 'superseded';
            ELSEIF mine AND held AND l_attempt = asked_attempt THEN
                SET verdict = 'again', l_ttl = asked_ttl_ms, l_renewed = moment, l_expires = moment + asked_ttl_ms * 1000;
                UPDATE tenure_leases SET expires_us = l_expires, ttl_ms = l_ttl, renewed_us = moment WHERE name = asked_name;
            ELSEIF held AND NOT mine THEN
                SET verdict = 'held';
            ELSEIF l_token = {token_max} THEN
                SET verdict = 'exhausted';
            ELSE
                SET verdict = 'granted', p_owner = l_owner, p_token = l_token,
                    p_end = IF(l_released IS NULL AND NOT held, 'expired', 'released'),
                    p_us = COALESCE(l_released, LEAST(l_expires, moment)), l_token = GREATEST(l_token + 1, moment DIV 1000),
                    l_terms = LEAST(l_terms, 9223372036854775806) + 1;
                UPDATE tenure_leases SET
                    owner = asked_owner, incarnation = asked_incarnation, token = l_token, attempt = asked_attempt,
                    terms = l_terms, ttl_ms = asked_ttl_ms, acquired_us = moment, renewed_us = NULL,
                    expires_us = moment + asked_ttl_ms * 1000, released_us = NULL, step_down_us = NULL, note = asked_note,
                    previous_owner = p_owner, previous_token = p_token, previous_end = p_end, previous_us = p_us
                WHERE name = asked_name;
            END IF;
        END IF;
    END WHILE;
    COMMIT AND NO CHAIN NO RELEASE;
    SET SESSION innodb_lock_wait_timeout = lock_wait;
    IF verdict = 'granted' THEN
        SET l_owner = asked_owner, l_incarnation = asked_incarnation, l_attempt = asked_attempt, l_ttl = asked_ttl_ms,
            l_acquired = moment, l_renewed = NULL, l_expires = moment + asked_ttl_ms * 1000, l_released = NULL, l_wish = NULL,
            l_note = asked_note;
    END IF;
    -- Answered after the commit, from what was decided: nobody hears of a term that is not on disk.
    -- Texts as their bytes, whatever character set the session wants answers in.
    SELECT CAST(COALESCE(verdict, 'busy') AS BINARY), CAST(asked_name AS BINARY), CAST(l_owner AS BINARY),
        CAST(l_incarnation AS BINARY), l_token, l_attempt, l_terms, l_ttl,
        l_released IS NOT NULL, l_wish IS NOT NULL, l_expires - moment, moment - l_acquired,
        moment - COALESCE(l_renewed, l_acquired), CAST(l_note AS BINARY), CAST(p_owner AS BINARY), p_token,
        CAST(p_end AS BINARY), l_acquired - p_us;
END
