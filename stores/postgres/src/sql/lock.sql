-- Locks the rows of these names, in the order of their names, and answers which: all that exist, but for those that
-- somebody else keeps locked, so that they disturb no other.
CREATE OR REPLACE FUNCTION {schema}.lock(asked_names text[]) RETURNS text[] LANGUAGE plpgsql AS $function$
DECLARE
    locked text[] := ARRAY(
        SELECT l.name::text FROM {schema}.leases l WHERE l.name = ANY (asked_names) ORDER BY l.name FOR NO KEY UPDATE SKIP LOCKED
    );
    found_now bigint;
BEGIN
    SELECT count(*) INTO found_now FROM {schema}.leases l WHERE l.name = ANY (asked_names);
    IF found_now > cardinality(locked) THEN
        PERFORM set_config('lock_timeout', '1000', true);
        BEGIN
            locked := ARRAY(
                SELECT l.name::text FROM {schema}.leases l WHERE l.name = ANY (asked_names) ORDER BY l.name FOR NO KEY UPDATE
            );
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            NULL;
        END;
    END IF;
    RETURN locked;
END
$function$;
