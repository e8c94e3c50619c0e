-- Begin of a batch: locks the rows of `asked`, all that exist, but for those that somebody else keeps locked, so that they
-- disturb no other. The places of what is locked are in `locked`. Where there is but one, as nearly always, and nobody keeps
-- it locked, its name is in `only_name` and its term beside it: what has a table of one row is quicker without.
DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE list_length BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
    DECLARE moment, locked_now, found_now, shortest_ms, waits_us, pause_us BIGINT;
    DECLARE waited_us BIGINT DEFAULT 0;
    DECLARE locked LONGTEXT {text};
    DECLARE only_name VARCHAR(255) {text};
    DECLARE only_incarnation VARCHAR(32) {text};
    DECLARE only_token, only_attempt, only_ttl_ms BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK AND NO CHAIN NO RELEASE;
        {restore}
        RESIGNAL;
    END;
    SET SESSION innodb_lock_wait_timeout = 1, SESSION group_concat_max_len = 65536;
    {begin}
    IF JSON_LENGTH(asked) = 1 THEN
        SELECT name INTO only_name FROM tenure_leases
            WHERE name = CONVERT(UNHEX(JSON_UNQUOTE(JSON_EXTRACT(asked, '$[0][0]'))) USING utf8mb4) COLLATE utf8mb4_bin
            FOR UPDATE SKIP LOCKED;
    END IF;
    IF only_name IS NOT NULL THEN
        SET locked = '1', locked_now = 1, found_now = 1, only_incarnation = JSON_UNQUOTE(JSON_EXTRACT(asked, '$[0][1]')),
            only_token = JSON_EXTRACT(asked, '$[0][2]'), only_attempt = JSON_EXTRACT(asked, '$[0][3]'),
            only_ttl_ms = JSON_EXTRACT(asked, '$[0][4]');
    ELSE
        SELECT GROUP_CONCAT(a.place), COUNT(*) INTO locked, locked_now
            FROM {terms_apart} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a} FOR UPDATE SKIP LOCKED;
        SELECT COUNT(*), MIN(lease.ttl_ms) INTO found_now, shortest_ms
            FROM {terms} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a};
    END IF;
    -- Looked at again and again, as InnoDB waits for whole seconds: a second in all, and a twentieth of the shortest ttl. Who
    -- asks gives a request a tenth, and would hear nothing of those that are locked here until this transaction ends.
    SET waits_us = LEAST(1000000, shortest_ms * 50);
    WHILE found_now > locked_now AND waited_us < waits_us DO
        SET pause_us = LEAST(waited_us + 10000, waits_us - waited_us), waited_us = waited_us + pause_us;
        DO SLEEP(pause_us / 1000000);
        SELECT GROUP_CONCAT(a.place), COUNT(*) INTO locked, locked_now
            FROM {terms_apart} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a} FOR UPDATE SKIP LOCKED;
        SELECT COUNT(*) INTO found_now
            FROM {terms} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a};
    END WHILE;
    SET locked = COALESCE(locked, '');
