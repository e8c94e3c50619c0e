-- Gives one lease back as `release` does, and answers in one value. One of the very term, which nobody keeps locked, is what
-- nearly every release finds: it is vacated by one statement; all else is for `release`.
CREATE OR REPLACE FUNCTION {schema}.give_back(
    asked_name text, asked_incarnation text, asked_token bigint, asked_attempt bigint
) RETURNS text[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    quickly text;
    moment  timestamptz;
    answer  text[];
BEGIN
    -- Without waiting for the disk, as `release`. Nor for a row: one that is locked is not found, and left to `release`. The commit
    -- waits for the notifications' lock.
    quickly := set_config('lock_timeout', '2500', true) || set_config('synchronous_commit', 'off', true);
    moment := clock_timestamp();
    UPDATE {schema}.leases lease SET
        released_at = moment, expires_at = least(lease.expires_at, moment), step_down_asked_at = NULL
    WHERE lease.ctid = (SELECT l.ctid FROM {schema}.leases l WHERE l.name = asked_name FOR NO KEY UPDATE SKIP LOCKED)
        AND lease.name = asked_name AND lease.incarnation = asked_incarnation AND lease.token = asked_token
        AND lease.attempt = asked_attempt AND lease.released_at IS NULL AND {understood}
    RETURNING ARRAY['vacated', {record_texts}], pg_notify({channel}, 'vacated ' || lease.token || ' ' || lease.name)
    INTO answer, quickly;
    IF NOT FOUND THEN
        SELECT ARRAY[found.verdict, {found_texts}] INTO answer FROM {schema}.release(
            ARRAY[asked_name], ARRAY[asked_incarnation], ARRAY[asked_token], ARRAY[asked_attempt]
        ) found;
    END IF;
    RETURN answer;
END
$function$;
