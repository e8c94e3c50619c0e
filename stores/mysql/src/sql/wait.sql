-- Waits until the leases whose names are like `pattern` are not as `known` tells any more, at most about `wait_us`, and answers
-- with them and with what to know the next time. The server looks at its own rows, as nothing can tell it of a change:
-- nobody asks over the network again and again, and it makes no difference who has changed them. Renewals change nothing
-- that is looked at. Where what is known begins with "ends", a single lease that is held now, whatever it was, is nothing to
-- answer: who waits for an end is not to be woken by a lock that another process takes, or hands on within itself. The longer
-- a look takes the fewer there are, also where each finds a change; the more where a holder has just been asked to step down,
-- and at first: where leases change hands quickly, the next change is not far.
CREATE PROCEDURE IF NOT EXISTS tenure_wait_{version}(
    IN pattern VARCHAR(1024) {text}, IN known VARCHAR(255) {text}, IN wait_us BIGINT
)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE seen VARCHAR(255) {text};
    DECLARE moment, found, ending, pause_us BIGINT;
    DECLARE waited_us BIGINT DEFAULT 0;
    watching: LOOP
        -- A session that does not commit by itself would see for ever what it saw first.
        COMMIT AND NO CHAIN NO RELEASE;
        {primary_only}
        SET moment = {now_us};
        SELECT IF(known LIKE 'ends%',
                    CONCAT_WS(' ', 'ends', COUNT(*), COALESCE(SUM(IF(released_us IS NULL, NULL, token)), 0),
                        COALESCE(SUM(IF(step_down_us IS NULL, NULL, token)), 0)),
                    CONCAT_WS(' ', COUNT(*), COALESCE(SUM(token), 0), COUNT(released_us), COUNT(step_down_us))),
                COUNT(IF(step_down_us > moment - {ending_us}, 1, NULL)), COUNT(*) INTO seen, ending, found
            FROM tenure_leases WHERE name LIKE pattern ESCAPE '!';
        IF wait_us <= 0 OR seen <> known AND NOT (known LIKE 'ends %' AND seen = 'ends 1 0 0') THEN
            -- Who is answered asks again at once. What is shown is of after the pause, and so no older than what is known. Nobody
            -- waits so for the first answer, for that of a single lease, or where a look is short.
            SET pause_us = LEAST({idle_share} * ({now_us} - moment), {pause_max_us}, wait_us);
            IF known NOT IN ('', 'ends') AND found > 1 AND pause_us > {look_every_us} THEN
                COMMIT AND NO CHAIN NO RELEASE;
                DO SLEEP(pause_us / 1000000);
                {primary_only}
            END IF;
            LEAVE watching;
        END IF;
        SET known = seen;
        SET pause_us = IF(ending, {look_at_end_every_us}, LEAST(GREATEST({look_first_us}, waited_us DIV {waited_share}), {look_every_us}));
        SET pause_us = LEAST(GREATEST(pause_us, {idle_share} * ({now_us} - moment)), {pause_max_us});
        DO SLEEP(pause_us / 1000000);
        SET wait_us = wait_us - pause_us, waited_us = waited_us + pause_us;
    END LOOP;
    SELECT CAST(seen AS BINARY), CAST(lease.name AS BINARY), lease.token, lease.released_us IS NOT NULL, lease.step_down_us IS NOT NULL
        FROM (SELECT 1 AS one) always LEFT JOIN tenure_leases lease ON lease.name LIKE pattern ESCAPE '!';
    COMMIT AND NO CHAIN NO RELEASE;
END
