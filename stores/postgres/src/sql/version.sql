-- Which set-up this is; a store refuses to work with another.
CREATE OR REPLACE FUNCTION {schema}.version() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT {version}';
