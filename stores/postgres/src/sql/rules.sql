-- What the columns of a record may hold, as types: a rule of a type is looked at where a value is assigned, and costs nothing
-- where a column stays as it is; rules of the table are read and judged anew at every write of it.
DO $rule$ BEGIN
    CREATE DOMAIN {schema}.lease_name AS text COLLATE "C" CHECK ({lease_name_fits});
EXCEPTION WHEN duplicate_object THEN NULL; END $rule$;
DO $rule$ BEGIN
    CREATE DOMAIN {schema}.candidate_id AS text CHECK ({candidate_id_fits});
EXCEPTION WHEN duplicate_object THEN NULL; END $rule$;
DO $rule$ BEGIN
    CREATE DOMAIN {schema}.incarnation AS text CHECK (VALUE ~ '^[0-9a-f]{32}$');
EXCEPTION WHEN duplicate_object THEN NULL; END $rule$;
DO $rule$ BEGIN
    CREATE DOMAIN {schema}.positive AS bigint CHECK (VALUE >= 1);
EXCEPTION WHEN duplicate_object THEN NULL; END $rule$;
DO $rule$ BEGIN
    CREATE DOMAIN {schema}.ttl_ms AS bigint CHECK (VALUE BETWEEN 100 AND 86400000);
EXCEPTION WHEN duplicate_object THEN NULL; END $rule$;
DO $rule$ BEGIN
    CREATE DOMAIN {schema}.moment AS timestamptz CHECK (isfinite(VALUE));
EXCEPTION WHEN duplicate_object THEN NULL; END $rule$;
DO $rule$ BEGIN
    CREATE DOMAIN {schema}.term_end AS text CHECK (VALUE IN ('released', 'expired'));
EXCEPTION WHEN duplicate_object THEN NULL; END $rule$;
