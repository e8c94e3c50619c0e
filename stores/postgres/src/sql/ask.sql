-- Leaves a wish for the holder of the very term; answers whether it stands there.
CREATE OR REPLACE FUNCTION {schema}.ask(asked_name text, asked_token bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    lease  {schema}.leases;
    moment timestamptz;
BEGIN
    -- Without waiting for the disk, as `release`, which the wish is for: its notification would keep that waiting.
    PERFORM set_config('lock_timeout', '1250', true), set_config('synchronous_commit', 'off', true);
    SELECT * INTO lease FROM {schema}.leases l WHERE l.name = asked_name FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    moment := clock_timestamp();
    IF lease.token <> asked_token OR lease.released_at IS NOT NULL OR lease.expires_at <= moment
        OR NOT ({understood} AND {lasts_no_longer}) THEN
        RETURN false;
    END IF;
    IF lease.step_down_asked_at IS NULL THEN
        UPDATE {schema}.leases SET step_down_asked_at = moment WHERE name = asked_name;
        PERFORM pg_notify({channel}, 'asked ' || lease.token || ' ' || lease.name);
    END IF;
    RETURN true;
END
$function$;
