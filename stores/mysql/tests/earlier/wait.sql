-- The procedure that waits as set-ups made it before it could look for ends alone.
CREATE OR REPLACE PROCEDURE tenure_wait_1(
    IN pattern VARCHAR(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN known VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN wait_us BIGINT
)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE seen VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
    DECLARE moment, ending, pause_us BIGINT;
    watching: LOOP
        -- A session that does not commit by itself would see for ever what it saw first.
        COMMIT AND NO CHAIN NO RELEASE;
        IF CAST(@@GLOBAL.read_only AS CHAR) NOT IN ('0', 'OFF') THEN SIGNAL SQLSTATE 'TN010' SET MESSAGE_TEXT = 'the server takes no writes'; END IF;
        SET moment = TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6));
        SELECT CONCAT_WS(' ', COUNT(*), COALESCE(SUM(token), 0), COUNT(released_us), COUNT(step_down_us)),
                COUNT(IF(step_down_us > moment - 10000000, 1, NULL)) INTO seen, ending
            FROM tenure_leases WHERE name LIKE pattern ESCAPE '!';
        IF seen <> known OR wait_us <= 0 THEN
            LEAVE watching;
        END IF;
        SET pause_us = LEAST(GREATEST(IF(ending, 2000, 20000), 10 * (TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6)) - moment)), 2000000);
        DO SLEEP(pause_us / 1000000);
        SET wait_us = wait_us - pause_us;
    END LOOP;
    SELECT CAST(seen AS BINARY), CAST(lease.name AS BINARY), lease.token, lease.released_us IS NOT NULL, lease.step_down_us IS NOT NULL
        FROM (SELECT 1 AS one) always LEFT JOIN tenure_leases lease ON lease.name LIKE pattern ESCAPE '!';
    COMMIT AND NO CHAIN NO RELEASE;
END
