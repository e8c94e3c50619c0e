-- One row per protected resource. Transactions of the term that holds it lock it together; a claim waits for them, at a
-- turnstile: while it waits, no further one comes in.
CREATE TABLE IF NOT EXISTS {schema}.fences (
    resource       text COLLATE "C" PRIMARY KEY CHECK ({resource_fits}),
    lease          text CHECK ({lease_fits}), -- whose tokens these are; null until the first claim
    token          bigint      NOT NULL CHECK (token >= 1), -- the mark: of the latest term that claimed; only rises
    claimed_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    previous_token bigint,
    bumped_token   bigint -- while it equals the mark, an operator has raised it, and nobody has claimed it yet
);

-- A table of an earlier set-up gets it here. Only then: to look for it would keep everybody out, and wait for who is inside.
DO $later$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
        WHERE attrelid = '{schema}.fences'::regclass AND attname = 'bumped_token' AND NOT attisdropped) THEN
        ALTER TABLE {schema}.fences ADD COLUMN bumped_token bigint;
    END IF;
END
$later$;

-- Refusals are counted apart, so that counting waits for nobody.
CREATE TABLE IF NOT EXISTS {schema}.refusals (
    resource   text COLLATE "C" PRIMARY KEY,
    refused    bigint      NOT NULL CHECK (refused >= 0),
    last_token bigint      NOT NULL,
    last_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Locks the row of a mark alone, for who has passed its turnstile, and answers with it; with nulls where there is none. Who
-- keeps it locked all the same came in without the turnstile, as an earlier Tenure does. So it is looked at again and again:
-- a plain wait would wait for one of them after the other, each as long as `lock_timeout` says, and in all for ever.
CREATE OR REPLACE FUNCTION {schema}.hold(asked_resource text, give_up_at timestamptz) RETURNS {schema}.fences
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    mark {schema}.fences;
BEGIN
    LOOP
        SELECT * INTO mark FROM {schema}.fences f WHERE f.resource = asked_resource FOR UPDATE SKIP LOCKED;
        EXIT WHEN FOUND OR NOT EXISTS (SELECT FROM {schema}.fences f WHERE f.resource = asked_resource);
        IF clock_timestamp() >= give_up_at THEN
            RAISE lock_not_available USING MESSAGE = 'the mark is kept locked by transactions that pass no turnstile';
        END IF;
        PERFORM pg_sleep(0.005);
    END LOOP;
    RETURN mark;
END
$function$;

-- Raises the mark of a resource if the rules of a claim say so, and answers what they were judged by: the row as it was
-- found under its lock (its lease null where the mark is this lease's and nobody has claimed it), the highest token that the
-- lease has been granted (null where the lease is not kept here), the clock in ms, and whether the mark was raised. A caller
-- whose leases are elsewhere has set `tenure.lease_store`: a record of that name says nothing of their tokens.
CREATE OR REPLACE FUNCTION {schema}.claim(asked_resource text, asked_lease text, asked_token bigint)
RETURNS TABLE (found_lease text, found_token bigint, granted_token bigint, clock_ms bigint, raised boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    mark       {schema}.fences;
    day_ms     constant bigint := 24 * 60 * 60 * 1000;
    give_up_at constant timestamptz := clock_timestamp() + interval '4 s';
BEGIN
    PERFORM set_config('lock_timeout', '4000', true), set_config('synchronous_commit',
        CASE WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true);
    {primary_only}
    FOR round IN 1..3 LOOP
        raised := false;
        SELECT l.token INTO granted_token FROM {schema}.leases l WHERE l.name = asked_lease
            AND l.token <= {token_max} AND {leases_here};
        clock_ms := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
        SELECT * INTO mark FROM {schema}.fences f WHERE f.resource = asked_resource;
        IF mark.lease = asked_lease AND mark.bumped_token = mark.token THEN
            -- Its own number has not claimed either.
            mark.lease := NULL;
        END IF;
        IF mark.resource IS NOT NULL AND (mark.lease <> asked_lease OR mark.token > asked_token
            OR mark.token = asked_token AND mark.lease = asked_lease) THEN
            -- Refused, or held already: either way without a lock.
            found_lease := mark.lease;
            found_token := mark.token;
            RETURN NEXT;
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock({turnstile}), set_config('lock_timeout', '500', true);
        SELECT * INTO mark FROM {schema}.hold(asked_resource, give_up_at);
        IF mark.lease = asked_lease AND mark.bumped_token = mark.token THEN
            mark.lease := NULL;
        END IF;
        found_lease := mark.lease;
        found_token := mark.token;
        -- Where there is no mark, one may have stood here that was removed: the lease tells that the term is over.
        IF asked_token > coalesce(granted_token, greatest(clock_ms, coalesce(mark.token, 0)) + day_ms)
            OR mark.resource IS NULL AND asked_token < granted_token THEN
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
                lease = asked_lease, token = asked_token, claimed_at = clock_timestamp(), previous_token = mark.token,
                bumped_token = NULL
            WHERE f.resource = asked_resource;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the mark was not raised: a trigger or a rule of the table has swallowed it';
            END IF;
            raised := true;
        END IF;
        RETURN NEXT;
        RETURN;
    END LOOP;
    RAISE lock_not_available USING MESSAGE = 'the mark came and went under the claim';
END
$function$;

-- Raises a mark for an operator: above itself, above `asked_above`, above what its lease was granted, and above the clock.
-- Where the highest of the others is counted, and no time of a clock, without the clock: no later term would ever get there.
CREATE OR REPLACE FUNCTION {schema}.bump(asked_resource text, asked_above bigint, asked_lease text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    mark       {schema}.fences;
    granted    bigint;
    highest    bigint;
    give_up_at constant timestamptz := clock_timestamp() + interval '4 s';
BEGIN
    PERFORM set_config('lock_timeout', '4000', true), set_config('synchronous_commit', 'on', true);
    PERFORM pg_advisory_xact_lock({turnstile}), set_config('lock_timeout', '500', true);
    SELECT * INTO mark FROM {schema}.hold(asked_resource, give_up_at);
    SELECT l.token INTO granted FROM {schema}.leases l WHERE l.name = coalesce(asked_lease, mark.lease)
        AND l.token <= {token_max} AND {leases_here};
    highest := greatest(mark.token, granted, asked_above);
    IF highest IS NULL OR highest >= 1000000000000 THEN
        highest := greatest(highest, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
    END IF;
    IF highest >= {token_max} THEN
        RETURN NULL;
    END IF;
    INSERT INTO {schema}.fences AS f (resource, lease, token, bumped_token)
    VALUES (asked_resource, asked_lease, highest + 1, highest + 1)
    ON CONFLICT (resource) DO UPDATE SET
        lease = coalesce(asked_lease, f.lease), token = greatest(f.token, highest) + 1, claimed_at = clock_timestamp(),
        previous_token = f.token, bumped_token = greatest(f.token, highest) + 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the mark was not raised: a trigger or a rule of the table has swallowed it';
    END IF;
    RETURN (SELECT f.token FROM {schema}.fences f WHERE f.resource = asked_resource);
END
$function$;
