-- A later set-up is left as it is: its functions would be replaced under those who use them.
DO $check$
BEGIN
    IF to_regprocedure({version_function}) IS NOT NULL THEN
        IF {schema}.version() > {version} THEN
            RAISE EXCEPTION 'the schema is of set-up %, and this would make set-up {version} of it', {schema}.version()
                USING ERRCODE = '{later}', HINT = 'run `tenure store init` of the latest Tenure that uses the schema';
        END IF;
    END IF;
END
$check$;
