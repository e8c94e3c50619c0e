-- One row per protected resource. Transactions of the term that holds it lock it together; a claim waits for them, at a
-- turnstile: while it waits, no further one comes in.
CREATE TABLE IF NOT EXISTS {schema}.fences (
    resource       text COLLATE "C" PRIMARY KEY CHECK ({resource_fits}),
    lease          text CHECK ({lease_fits}), -- whose tokens these are; null until the first claim
    token          bigint      NOT NULL CHECK (token >= 1), -- the mark: of the latest term that claimed; only rises
    claimed_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    previous_token bigint
);

-- Refusals are counted apart, so that counting waits for nobody.
CREATE TABLE IF NOT EXISTS {schema}.refusals (
    resource   text COLLATE "C" PRIMARY KEY,
    refused    bigint      NOT NULL CHECK (refused >= 0),
    last_token bigint      NOT NULL,
    last_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Raises the mark of a resource if the rules of a claim say so, and answers what they were judged by: the row as it was
-- found under its lock, the highest token that the lease has been granted (null where the lease is not kept here), the
-- clock in ms, and whether the mark was raised.
CREATE OR REPLACE FUNCTION {schema}.claim(asked_resource text, asked_lease text, asked_token bigint)
RETURNS TABLE (found_lease text, found_token bigint, granted_token bigint, clock_ms bigint, raised boolean)
LANGUAGE plpgsql AS $function$
DECLARE
    mark    {schema}.fences;
    day_ms  constant bigint := 24 * 60 * 60 * 1000;
    wait_ms constant integer := 4000;
    began   constant timestamptz := clock_timestamp();
BEGIN
    PERFORM set_config('lock_timeout', wait_ms::text, true), set_config('synchronous_commit',
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
        PERFORM pg_advisory_xact_lock({turnstile});
        -- Who locks the row all the same came in without the turnstile, as by an older set-up. A wait for it gets what is
        -- left of the time: each would be counted anew.
        PERFORM set_config('lock_timeout',
            greatest(1, wait_ms - floor(extract(epoch FROM clock_timestamp() - began) * 1000)::integer)::text, true);
        SELECT * INTO mark FROM {schema}.fences f WHERE f.resource = asked_resource FOR UPDATE;
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

-- Raises a mark for an operator: above itself, above `asked_above`, above what its lease was granted, above the clock.
CREATE OR REPLACE FUNCTION {schema}.bump(asked_resource text, asked_above bigint, asked_lease text) RETURNS bigint
LANGUAGE plpgsql AS $function$
DECLARE
    mark    {schema}.fences;
    granted bigint;
    highest bigint;
BEGIN
    PERFORM set_config('lock_timeout', '4000', true), set_config('synchronous_commit', 'on', true);
    PERFORM pg_advisory_xact_lock({turnstile}), set_config('lock_timeout', '500', true);
    SELECT * INTO mark FROM {schema}.fences f WHERE f.resource = asked_resource FOR UPDATE;
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
