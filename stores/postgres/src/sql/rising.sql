-- A mark only rises, whoever writes to the table: also what applies a logical subscription, for which no other trigger is called. That
-- stops there: a lower mark would admit terms that are over. Who means it removes the mark.
CREATE OR REPLACE FUNCTION {schema}.refuse_lower_mark() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    RAISE EXCEPTION 'refused: the mark of "%" is %, and this would make it % of "%"',
        OLD.resource, OLD.token, NEW.token, NEW.resource
        USING ERRCODE = 'check_violation', CONSTRAINT = 'mark_only_rises',
            HINT = 'a mark is raised by tenure fence bump; what a subscription brings is of another primary: keep the table out of it';
END
$function$;

-- Only where it is missing, or is called for no more than others are. Transactions that have entered are not waited for.
DO $trigger$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = '{schema}.fences'::regclass AND tgname = 'mark_only_rises') THEN
        CREATE TRIGGER mark_only_rises BEFORE UPDATE ON {schema}.fences FOR EACH ROW
            WHEN (NEW.token < OLD.token OR NEW.resource <> OLD.resource) EXECUTE FUNCTION {schema}.refuse_lower_mark();
    END IF;
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = '{schema}.fences'::regclass AND tgname = 'mark_only_rises'
        AND tgenabled <> 'A') THEN
        ALTER TABLE {schema}.fences ENABLE ALWAYS TRIGGER mark_only_rises;
    END IF;
END
$trigger$;
