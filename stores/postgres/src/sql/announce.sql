-- Tells watchers that a term has begun, in a transaction of its own: within the acquisition, the notification would
-- keep every other one of the database waiting for the acquisition's disk. Locked, so that it cannot be told after the
-- term's end.
CREATE OR REPLACE FUNCTION {schema}.announce(asked_name text, asked_token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    PERFORM set_config('lock_timeout', '1250', true), set_config('synchronous_commit', 'off', true);
    PERFORM 1 FROM {schema}.leases l
        WHERE l.name = asked_name AND l.token = asked_token AND l.released_at IS NULL FOR SHARE;
    IF FOUND THEN
        PERFORM pg_notify({channel}, 'taken ' || asked_token || ' ' || asked_name);
    END IF;
END
$function$;

-- A record that somebody removes frees its name.
CREATE OR REPLACE FUNCTION {schema}.tell_of_removal() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM pg_notify({channel}, 'gap');
    ELSE
        PERFORM pg_notify({channel}, 'vacated ' || OLD.token || ' ' || OLD.name);
    END IF;
    RETURN NULL;
END
$function$;

-- Only where they are missing: to replace one would wait for everybody who reads the leases, and every request behind it.
DO $triggers$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = '{schema}.leases'::regclass AND tgname = 'tell_of_removal') THEN
        CREATE TRIGGER tell_of_removal AFTER DELETE ON {schema}.leases
            FOR EACH ROW EXECUTE FUNCTION {schema}.tell_of_removal();
    END IF;
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = '{schema}.leases'::regclass AND tgname = 'tell_of_truncation') THEN
        CREATE TRIGGER tell_of_truncation AFTER TRUNCATE ON {schema}.leases
            FOR EACH STATEMENT EXECUTE FUNCTION {schema}.tell_of_removal();
    END IF;
END
$triggers$;
