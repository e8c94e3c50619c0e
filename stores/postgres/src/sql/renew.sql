-- Extends leases, each by its ttl from now, and answers for each request, in their order. Of several
-- requests of one batch for one term, one counts.
CREATE OR REPLACE FUNCTION {schema}.renew(
    asked_names text[], asked_incarnations text[], asked_tokens bigint[], asked_attempts bigint[], asked_ttls_ms bigint[]
) RETURNS TABLE (place bigint, verdict text, {record_columns})
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
#variable_conflict use_column
DECLARE
    locked text[];
    moment timestamptz;
    lease  {schema}.leases;
BEGIN
    {durably}
    -- One lease of the very term, which nobody keeps locked: what nearly every renewal is.
    IF cardinality(asked_names) = 1 THEN
        SELECT * INTO lease FROM {schema}.leases WHERE name = asked_names[1] FOR NO KEY UPDATE SKIP LOCKED;
        moment := clock_timestamp();
        IF FOUND AND lease.incarnation = asked_incarnations[1] AND lease.token = asked_tokens[1]
            AND lease.attempt = asked_attempts[1] AND lease.released_at IS NULL AND lease.expires_at > moment AND {understood} THEN
            UPDATE {schema}.leases SET
                expires_at = moment + asked_ttls_ms[1] * interval '1 millisecond',
                ttl_ms = asked_ttls_ms[1], renewed_at = moment
            WHERE name = lease.name RETURNING * INTO lease;
            RETURN QUERY SELECT 1::bigint, 'extended', {record};
            RETURN;
        END IF;
    END IF;
    locked := {schema}.lock(asked_names);
    moment := clock_timestamp();
    UPDATE {schema}.leases lease SET
        expires_at = moment + asked.ttl_ms * interval '1 millisecond',
        ttl_ms = asked.ttl_ms, renewed_at = moment
    FROM (
        SELECT DISTINCT ON (a.name, a.incarnation, a.token, a.attempt) a.*
        FROM unnest(asked_names, asked_incarnations, asked_tokens, asked_attempts, asked_ttls_ms)
            AS a (name, incarnation, token, attempt, ttl_ms)
    ) asked
    WHERE lease.name = asked.name AND lease.name = ANY (locked) AND lease.incarnation = asked.incarnation
        AND lease.token = asked.token AND lease.attempt = asked.attempt
        AND lease.released_at IS NULL AND lease.expires_at > moment AND {understood};
    -- With the name also where there is no such lease: so whoever is given the answer to another's request can tell.
    RETURN QUERY SELECT asked.place, CASE
            WHEN lease.name IS NULL THEN 'gone'
            WHEN lease.name <> ALL (locked) THEN 'busy'
            WHEN lease.incarnation = asked.incarnation AND lease.token = asked.token AND lease.attempt = asked.attempt
                AND lease.released_at IS NULL AND lease.expires_at > moment AND {understood} THEN 'extended'
            ELSE 'lost' END,
        {record_of_asked}
    FROM unnest(asked_names, asked_incarnations, asked_tokens, asked_attempts)
        WITH ORDINALITY AS asked (name, incarnation, token, attempt, place)
    LEFT JOIN {schema}.leases lease ON lease.name = asked.name;
END
$function$;
