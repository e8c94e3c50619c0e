-- Admits a term into the transaction that calls it, or raises. For every language: call it first in each transaction
-- that writes. A plain statement outside a transaction, as with autocommit on, is one of its own, and admits nothing that follows.
CREATE OR REPLACE FUNCTION {schema}.enter(asked_resource text, asked_lease text, asked_token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    mark {schema}.fences;
BEGIN
    IF asked_resource IS NULL OR asked_lease IS NULL OR asked_token IS NULL THEN
        -- Nothing compares with it, so it would pass by rules: a driver binds so what is not set.
        RAISE EXCEPTION 'refused: the resource, the lease or the token is NULL'
            USING ERRCODE = 'TN003', CONSTRAINT = coalesce(asked_resource, ''), HINT = 'is TENURE_TOKEN set?';
    END IF;
    -- Shared: transactions of one term run side by side, and a claim waits for all of them. At the turnstile first: they
    -- come in after a claim that waits. Whoever is inside comes in again at once.
    PERFORM pg_advisory_xact_lock_shared({turnstile});
    SELECT * INTO mark FROM {schema}.fences f WHERE f.resource = asked_resource FOR SHARE;
    IF mark.lease = asked_lease AND mark.bumped_token = mark.token THEN
        -- Raised by an operator: its own number has not claimed either.
        mark.lease := NULL;
    END IF;
    IF mark.lease <> asked_lease THEN
        RAISE EXCEPTION 'refused: token % is of lease "%", but "%" belongs to lease "%"',
            asked_token, asked_lease, asked_resource, mark.lease
            USING ERRCODE = 'TN002', CONSTRAINT = asked_resource, HINT = 'give each lease resources of its own';
    ELSIF mark.token > asked_token THEN
        RAISE EXCEPTION 'refused: token % is stale for "%", which term % has claimed',
            asked_token, asked_resource, mark.token
            USING ERRCODE = 'TN001', CONSTRAINT = asked_resource, HINT = 'stop this work';
    ELSIF mark.token IS DISTINCT FROM asked_token OR mark.lease IS DISTINCT FROM asked_lease THEN
        RAISE EXCEPTION 'refused: token % has not claimed "%"', asked_token, asked_resource
            USING ERRCODE = 'TN003', CONSTRAINT = asked_resource,
                HINT = 'claim the fence before reading what will be changed';
    END IF;
    PERFORM {show};
END
$function$;

-- What the triggers of guarded tables call: refuses a write, unless its transaction has entered the resource. It may have
-- entered several, with terms of several leases. Also for programs that know nothing of Tenure:
-- SELECT set_config('tenure.term', '<token> <lease>', true) shows the term of a transaction.
CREATE OR REPLACE FUNCTION {schema}.admit(asked_table text, asked_resource text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    term text := coalesce({entered} ->> asked_resource, current_setting('tenure.term', true), '');
BEGIN
    IF term !~ '^[0-9]{1,19} .' THEN
        RAISE EXCEPTION 'refused: table "%" is written only by the term that holds "%", and this transaction shows none',
            asked_table, asked_resource
            USING ERRCODE = 'TN003', CONSTRAINT = asked_resource,
                HINT = 'claim the resource, and enter it in each transaction that writes';
    END IF;
    PERFORM {schema}.enter(asked_resource, substr(term, strpos(term, ' ') + 1), split_part(term, ' ', 1)::bigint);
END
$function$;

-- For tables that a user names: asks once for each statement, with the resource in the trigger's argument.
CREATE OR REPLACE FUNCTION {schema}.refuse_stale() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    PERFORM {schema}.admit(TG_TABLE_NAME, TG_ARGV[0]);
    RETURN NULL;
END
$function$;

-- The same for each row, of tables that have a parent. A function of its own, as what it answers is written: the other's
-- answer would leave every row out without a word.
CREATE OR REPLACE FUNCTION {schema}.refuse_stale_row() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    PERFORM {schema}.admit(TG_TABLE_NAME, TG_ARGV[0]);
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$function$;
