-- Which set-up this is; a store refuses to work with another.
CREATE OR REPLACE FUNCTION {schema}.version() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT {version}';

-- A table of the same name that is another program's ends the set-up here, and leaves everything as it was.
DO $check$
BEGIN
    PERFORM {record} FROM {schema}.leases lease, (SELECT clock_timestamp() AS moment) clock LIMIT 0;
    PERFORM resource, lease, token, claimed_at, previous_token, bumped_token FROM {schema}.fences LIMIT 0;
    PERFORM resource, refused, last_token, last_at FROM {schema}.refusals LIMIT 0;
END
$check$;
