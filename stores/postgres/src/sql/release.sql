-- Gives leases back, each if it is of the very term, and answers for each request, in their order.
CREATE OR REPLACE FUNCTION {schema}.release(
    asked_names text[], asked_incarnations text[], asked_tokens bigint[], asked_attempts bigint[]
) RETURNS TABLE (place bigint, verdict text, {record_columns})
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
#variable_conflict use_column
DECLARE
    locked  text[];
    moment  timestamptz;
    vacated record;
    lease   {schema}.leases;
BEGIN
    -- Without waiting for the disk: a release that a crash takes back is an expiry, later. And a notification keeps every
    -- other one of the database waiting until its transaction has ended.
    PERFORM set_config('lock_timeout', '2500', true), set_config('synchronous_commit', 'off', true);
    -- One lease of the very term, which nobody keeps locked: what nearly every release is.
    IF cardinality(asked_names) = 1 THEN
        SELECT * INTO lease FROM {schema}.leases WHERE name = asked_names[1] FOR NO KEY UPDATE SKIP LOCKED;
        moment := clock_timestamp();
        IF FOUND AND lease.incarnation = asked_incarnations[1] AND lease.token = asked_tokens[1]
            AND lease.attempt = asked_attempts[1] AND lease.released_at IS NULL AND {understood} THEN
            UPDATE {schema}.leases SET
                released_at = moment, expires_at = least(expires_at, moment), step_down_asked_at = NULL
            WHERE name = lease.name RETURNING * INTO lease;
            PERFORM pg_notify({channel}, 'vacated ' || lease.token || ' ' || lease.name);
            RETURN QUERY SELECT 1::bigint, 'vacated', {record};
            RETURN;
        END IF;
    END IF;
    locked := {schema}.lock(asked_names);
    -- For the notifications' lock, which the commit waits for: rows were waited for by less.
    PERFORM set_config('lock_timeout', '2500', true);
    moment := clock_timestamp();
    FOR vacated IN
        UPDATE {schema}.leases lease SET
            released_at = moment, expires_at = least(lease.expires_at, moment), step_down_asked_at = NULL
        FROM (
            SELECT DISTINCT a.* FROM unnest(asked_names, asked_incarnations, asked_tokens, asked_attempts)
                AS a (name, incarnation, token, attempt)
        ) asked
        WHERE lease.name = asked.name AND lease.name = ANY (locked) AND lease.incarnation = asked.incarnation
            AND lease.token = asked.token AND lease.attempt = asked.attempt AND lease.released_at IS NULL
            AND {understood}
        RETURNING lease.name, lease.token
    LOOP
        PERFORM pg_notify({channel}, 'vacated ' || vacated.token || ' ' || vacated.name);
    END LOOP;
    -- With the name also where there is no such lease: so whoever is given the answer to another's request can tell.
    RETURN QUERY SELECT asked.place, CASE
            WHEN lease.name IS NULL THEN 'gone'
            WHEN lease.name <> ALL (locked) THEN 'busy'
            WHEN lease.incarnation = asked.incarnation AND lease.token = asked.token AND lease.attempt = asked.attempt
                AND lease.released_at IS NOT NULL THEN 'vacated'
            ELSE 'lost' END,
        {record_of_asked}
    FROM unnest(asked_names, asked_incarnations, asked_tokens, asked_attempts)
        WITH ORDINALITY AS asked (name, incarnation, token, attempt, place)
    LEFT JOIN {schema}.leases lease ON lease.name = asked.name;
END
$function$;
