-- The marks as set-ups made them before a bumped one was known to be nobody's: put in the place of those of a set-up.
ALTER TABLE {schema}.fences DROP COLUMN bumped_token;

CREATE OR REPLACE FUNCTION {schema}.claim(asked_resource text, asked_lease text, asked_token bigint)
RETURNS TABLE (found_lease text, found_token bigint, granted_token bigint, clock_ms bigint, raised boolean)
LANGUAGE plpgsql AS $function$
DECLARE
    mark       {schema}.fences;
    day_ms     constant bigint := 24 * 60 * 60 * 1000;
    give_up_at constant timestamptz := clock_timestamp() + interval '4 s';
BEGIN
    PERFORM set_config('lock_timeout', '4000', true), set_config('synchronous_commit',
        CASE WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
    FOR round IN 1..3 LOOP
        raised := false;
        SELECT l.token INTO granted_token FROM {schema}.leases l WHERE l.name = asked_lease;
        clock_ms := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
        SELECT * INTO mark FROM {schema}.fences f WHERE f.resource = asked_resource;
        IF FOUND AND (mark.lease <> asked_lease OR mark.token > asked_token
            OR mark.token = asked_token AND mark.lease = asked_lease) THEN
            -- Refused, or held already: either way without a lock.
            found_lease := mark.lease;
            found_token := mark.token;
            RETURN NEXT;
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock(hashtextextended('{schema}/' || asked_resource, 1953854062)), set_config('lock_timeout', '500', true);
        SELECT * INTO mark FROM {schema}.hold(asked_resource, give_up_at);
        found_lease := mark.lease;
        found_token := mark.token;
        IF asked_token > coalesce(granted_token, greatest(clock_ms, coalesce(mark.token, 0)) + day_ms) THEN
            RETURN NEXT;
            RETURN;
        END IF;
        IF mark.resource IS NULL THEN
            INSERT INTO {schema}.fences (resource, lease, token) VALUES (asked_resource, asked_lease, asked_token)
            ON CONFLICT (resource) DO NOTHING;
            CONTINUE WHEN NOT FOUND;
            raised := true;
        ELSIF coalesce(mark.lease, asked_lease) = asked_lease
            AND (mark.token < asked_token OR mark.token = asked_token AND mark.lease IS NULL) THEN
            UPDATE {schema}.fences f SET
                lease = asked_lease, token = asked_token, claimed_at = clock_timestamp(), previous_token = mark.token
            WHERE f.resource = asked_resource;
            raised := true;
        END IF;
        RETURN NEXT;
        RETURN;
    END LOOP;
    RAISE lock_not_available USING MESSAGE = 'the mark came and went under the claim';
END
$function$;

CREATE OR REPLACE FUNCTION {schema}.bump(asked_resource text, asked_above bigint, asked_lease text) RETURNS bigint
LANGUAGE plpgsql AS $function$
DECLARE
    mark       {schema}.fences;
    granted    bigint;
    highest    bigint;
    give_up_at constant timestamptz := clock_timestamp() + interval '4 s';
BEGIN
    PERFORM set_config('lock_timeout', '4000', true), set_config('synchronous_commit', 'on', true);
    PERFORM pg_advisory_xact_lock(hashtextextended('{schema}/' || asked_resource, 1953854062)), set_config('lock_timeout', '500', true);
    SELECT * INTO mark FROM {schema}.hold(asked_resource, give_up_at);
    SELECT l.token INTO granted FROM {schema}.leases l WHERE l.name = coalesce(asked_lease, mark.lease);
    highest := greatest(mark.token, granted, asked_above, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
    IF highest = 9223372036854775807 THEN
        RETURN NULL;
    END IF;
    INSERT INTO {schema}.fences AS f (resource, lease, token) VALUES (asked_resource, asked_lease, highest + 1)
    ON CONFLICT (resource) DO UPDATE SET
        lease = coalesce(asked_lease, f.lease), token = greatest(f.token, highest) + 1, claimed_at = clock_timestamp(),
        previous_token = f.token;
    RETURN (SELECT f.token FROM {schema}.fences f WHERE f.resource = asked_resource);
END
$function$;

CREATE OR REPLACE FUNCTION {schema}.enter(asked_resource text, asked_lease text, asked_token bigint) RETURNS void
LANGUAGE plpgsql AS $function$
DECLARE
    mark {schema}.fences;
BEGIN
    -- Shared: transactions of one term run side by side, and a claim waits for all of them. At the turnstile first: they
    -- come in after a claim that waits. Whoever is inside comes in again at once.
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('{schema}/' || asked_resource, 1953854062));
    SELECT * INTO mark FROM {schema}.fences f WHERE f.resource = asked_resource FOR SHARE;
    IF mark.lease <> asked_lease THEN
        RAISE EXCEPTION 'refused: token % is of lease "%", but "%" belongs to lease "%"',
            asked_token, asked_lease, asked_resource, mark.lease
            USING ERRCODE = 'TN002', CONSTRAINT = asked_resource, HINT = 'give each lease resources of its own';
    ELSIF mark.token > asked_token THEN
        RAISE EXCEPTION 'refused: token % is stale for "%", which term % has claimed',
            asked_token, asked_resource, mark.token
            USING ERRCODE = 'TN001', CONSTRAINT = asked_resource, HINT = 'stop this work';
    ELSIF mark.token IS DISTINCT FROM asked_token OR mark.lease IS NULL THEN
        RAISE EXCEPTION 'refused: token % has not claimed "%"', asked_token, asked_resource
            USING ERRCODE = 'TN003', CONSTRAINT = asked_resource,
                HINT = 'claim the fence before reading what will be changed';
    END IF;
    PERFORM set_config('tenure.term', asked_token || ' ' || asked_lease, true);
END
$function$;
