-- Locks the rows of these names, in the order of their names, and answers which: all that exist, but for those that
-- somebody else keeps locked, so that they disturb no other.
CREATE OR REPLACE FUNCTION {schema}.lock(asked_names text[]) RETURNS text[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    locked text[] := ARRAY(
        SELECT l.name::text FROM {schema}.leases l WHERE l.name = ANY (asked_names) ORDER BY l.name FOR NO KEY UPDATE SKIP LOCKED
    );
    found_now bigint;
    shortest_ms bigint;
BEGIN
    SELECT count(*), min(l.ttl_ms) INTO found_now, shortest_ms FROM {schema}.leases l WHERE l.name = ANY (asked_names);
    IF found_now > cardinality(locked) THEN
        -- A second in all: a wait for a row is two, first for whoever waits for it already, then for whoever has it. And a
        -- twentieth of the shortest ttl: who asks gives a request a tenth, and would hear nothing of those that were not
        -- locked, whose rows this transaction keeps until it ends.
        PERFORM set_config('lock_timeout', greatest(1, least(500, shortest_ms / 40))::text, true);
        BEGIN
            locked := ARRAY(
                SELECT l.name::text FROM {schema}.leases l WHERE l.name = ANY (asked_names) ORDER BY l.name FOR NO KEY UPDATE
            );
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            -- It was waited for the first of them in vain. The others may be free by now, as those that were locked for a
            -- moment alone, by who announced a term.
            locked := ARRAY(
                SELECT l.name::text FROM {schema}.leases l WHERE l.name = ANY (asked_names) ORDER BY l.name
                    FOR NO KEY UPDATE SKIP LOCKED
            );
        END;
    END IF;
    RETURN locked;
END
$function$;
