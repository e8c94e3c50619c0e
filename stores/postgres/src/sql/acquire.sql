-- Takes a lease if it is free.
CREATE OR REPLACE FUNCTION {schema}.acquire(
    asked_name text, asked_owner text, asked_incarnation text, asked_attempt bigint, asked_ttl_ms bigint, asked_note text
) RETURNS TABLE (verdict text, {record_columns}) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
#variable_conflict use_column
DECLARE
    lease  {schema}.leases;
    moment timestamptz;
    mine   boolean;
    held   boolean;
BEGIN
    -- Before the table is looked at: somebody may keep the whole of it locked, too.
    PERFORM {to_take};
    {primary_only}
    -- Whoever only finds that somebody else holds the lease locks nothing and writes nothing.
    SELECT * INTO lease FROM {schema}.leases WHERE name = asked_name;
    moment := clock_timestamp();
    IF FOUND AND lease.incarnation <> asked_incarnation AND lease.released_at IS NULL AND lease.expires_at > moment THEN
        RETURN QUERY SELECT 'held', {record};
        RETURN;
    END IF;
    FOR round IN 1..3 LOOP
        SELECT * INTO lease FROM {schema}.leases WHERE name = asked_name FOR NO KEY UPDATE;
        -- Read after the wait for the row: before it, a lease could look expired that was renewed meanwhile. And read
        -- once: every part of the decision is of one moment.
        moment := clock_timestamp();
        IF NOT FOUND THEN
            INSERT INTO {schema}.leases (
                name, owner, incarnation, token, attempt, terms, ttl_ms, created_at, acquired_at, expires_at, note
            ) VALUES (
                asked_name, asked_owner, asked_incarnation, greatest(1, {milliseconds}), asked_attempt, 1, asked_ttl_ms,
                moment, moment, moment + asked_ttl_ms * interval '1 millisecond', asked_note
            ) ON CONFLICT (name) DO NOTHING RETURNING * INTO lease;
            IF FOUND THEN
                RETURN QUERY SELECT 'granted', {record};
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        IF NOT {understood} THEN
            RETURN QUERY SELECT 'unreadable', {record};
            RETURN;
        END IF;
        mine := lease.incarnation = asked_incarnation;
        held := lease.released_at IS NULL AND lease.expires_at > moment;
        IF mine AND (lease.attempt > asked_attempt
            OR lease.attempt = asked_attempt AND lease.released_at IS NOT NULL) THEN
            RETURN QUERY SELECT 'superseded', {record};
        ELSIF mine AND held AND lease.attempt = asked_attempt THEN
            UPDATE {schema}.leases SET
                expires_at = moment + asked_ttl_ms * interval '1 millisecond', ttl_ms = asked_ttl_ms, renewed_at = moment
            WHERE name = asked_name RETURNING * INTO lease;
            RETURN QUERY SELECT 'again', {record};
        ELSIF held AND NOT mine THEN
            RETURN QUERY SELECT 'held', {record};
        ELSIF lease.token = {token_max} THEN
            RETURN QUERY SELECT 'exhausted', {record};
        ELSE
            UPDATE {schema}.leases SET
                owner = asked_owner, incarnation = asked_incarnation, token = greatest(lease.token + 1, {milliseconds}),
                attempt = asked_attempt, terms = least(lease.terms, 9223372036854775806) + 1, ttl_ms = asked_ttl_ms,
                acquired_at = moment, renewed_at = NULL, expires_at = moment + asked_ttl_ms * interval '1 millisecond',
                released_at = NULL, step_down_asked_at = NULL, note = asked_note,
                previous_owner = lease.owner, previous_token = lease.token,
                previous_end = CASE WHEN lease.released_at IS NULL AND NOT held THEN 'expired' ELSE 'released' END,
                previous_at = coalesce(lease.released_at, least(lease.expires_at, moment))
            WHERE name = asked_name RETURNING * INTO lease;
            RETURN QUERY SELECT 'granted', {record};
        END IF;
        RETURN;
    END LOOP;
    RAISE lock_not_available USING MESSAGE = 'the record came and went under the request';
END
$function$;
