-- Takes a lease as `acquire` does, and answers in one value: rows of many columns cost more than the decision. A lease that has
-- a record and is free, or is taken anew from an earlier term of the same process, which is what nearly every acquisition finds,
-- is taken by one statement; all else is for `acquire`.
CREATE OR REPLACE FUNCTION {schema}.take(
    asked_name text, asked_owner text, asked_incarnation text, asked_attempt bigint, asked_ttl_ms bigint, asked_note text
) RETURNS text[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    durably text;
    moment  timestamptz;
    ended   timestamptz;
    answer  text[];
BEGIN
    durably := {to_take};
    moment := clock_timestamp();
    -- A row that somebody else holds is neither locked nor written. Whoever waits for the row finds it as it is afterwards.
    UPDATE {schema}.leases lease SET
        owner = asked_owner, incarnation = asked_incarnation, token = greatest(lease.token + 1, {milliseconds}),
        attempt = asked_attempt, terms = least(lease.terms, 9223372036854775806) + 1, ttl_ms = asked_ttl_ms,
        acquired_at = moment, renewed_at = NULL, expires_at = moment + asked_ttl_ms * interval '1 millisecond',
        released_at = NULL, step_down_asked_at = NULL, note = asked_note,
        previous_owner = lease.owner, previous_token = lease.token,
        previous_end = CASE WHEN lease.released_at IS NULL AND lease.expires_at <= moment THEN 'expired' ELSE 'released' END,
        previous_at = coalesce(lease.released_at, least(lease.expires_at, moment))
    WHERE lease.name = asked_name AND lease.token < {token_max} AND {understood}
        AND CASE WHEN lease.incarnation = asked_incarnation THEN lease.attempt < asked_attempt
            ELSE lease.released_at IS NOT NULL OR lease.expires_at <= moment END
    RETURNING ARRAY['granted', {record_texts}] INTO answer;
    IF NOT FOUND THEN
        SELECT ARRAY[found.verdict, {found_texts}] INTO answer
        FROM {schema}.acquire(asked_name, asked_owner, asked_incarnation, asked_attempt, asked_ttl_ms, asked_note) found;
        RETURN answer;
    END IF;
    ended := clock_timestamp();
    IF ended BETWEEN moment AND moment + interval '1 millisecond' THEN
        RETURN answer;
    END IF;
    IF ended < moment THEN
        -- What was over before may not be any more.
        RAISE serialization_failure USING MESSAGE = 'the clock was set back under the request';
    END IF;
    -- It was waited for. What was free before still is, since it is locked; but the term begins after the wait, and an earlier
    -- one of the same process that ended with its beginning ends there.
    moment := ended;
    UPDATE {schema}.leases lease SET
        token = greatest(lease.token, {milliseconds}), acquired_at = moment,
        previous_at = CASE WHEN lease.previous_at = lease.acquired_at THEN moment ELSE lease.previous_at END,
        expires_at = moment + asked_ttl_ms * interval '1 millisecond'
    WHERE lease.name = asked_name RETURNING ARRAY['granted', {record_texts}] INTO answer;
    RETURN answer;
END
$function$;
