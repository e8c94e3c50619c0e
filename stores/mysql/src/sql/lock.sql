-- Begin of a batch: locks the rows of `asked`, all that exist, but for those that somebody else keeps locked, so that they
-- disturb no other. The places of what is locked are in `locked`.
DECLARE lock_wait INT DEFAULT @@SESSION.innodb_lock_wait_timeout;
    DECLARE list_length BIGINT UNSIGNED DEFAULT @@SESSION.group_concat_max_len;
    DECLARE moment, locked_now, found_now BIGINT;
    DECLARE blocked INT DEFAULT 0;
    DECLARE locked LONGTEXT {text};
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        {restore}
        RESIGNAL;
    END;
    SET SESSION innodb_lock_wait_timeout = 1, SESSION group_concat_max_len = 65536;
    {begin}
    SELECT GROUP_CONCAT(a.place), COUNT(*) INTO locked, locked_now
        FROM {terms} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a} FOR UPDATE SKIP LOCKED;
    SELECT COUNT(*) INTO found_now FROM {terms} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a};
    IF found_now > locked_now THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR 1205, 1213 SET blocked = 1;
            SELECT GROUP_CONCAT(a.place) INTO locked
                FROM {terms} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a} FOR UPDATE;
        END;
        IF blocked THEN
            ROLLBACK;
            {begin}
            SELECT GROUP_CONCAT(a.place) INTO locked
                FROM {terms} a STRAIGHT_JOIN tenure_leases lease FORCE INDEX (PRIMARY) ON lease.name = {name_of_a} FOR UPDATE SKIP LOCKED;
        END IF;
    END IF;
    SET locked = COALESCE(locked, '');
