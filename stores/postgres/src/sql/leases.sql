-- One row per lease. A release and an expiry leave it: its token is the floor of the next one.
CREATE TABLE IF NOT EXISTS {schema}.leases (
    name               {schema}.lease_name   PRIMARY KEY,
    owner              {schema}.candidate_id NOT NULL, -- for people
    incarnation        {schema}.incarnation  NOT NULL, -- the real owner, new at every start
    token              {schema}.positive     NOT NULL, -- max(previous + 1, the server's clock in ms)
    attempt            {schema}.positive     NOT NULL,
    terms              {schema}.positive     NOT NULL,
    ttl_ms             {schema}.ttl_ms       NOT NULL,
    created_at         {schema}.moment       NOT NULL,
    acquired_at        {schema}.moment       NOT NULL,
    renewed_at         {schema}.moment,
    expires_at         {schema}.moment       NOT NULL,
    released_at        {schema}.moment,
    step_down_asked_at timestamptz,
    note               text                  NOT NULL, -- for people; a backslash is \\, a NUL is \0
    previous_owner     {schema}.candidate_id,
    previous_token     {schema}.positive,
    previous_end       {schema}.term_end,
    previous_at        {schema}.moment,
    CONSTRAINT previous_is_whole CHECK (num_nulls(previous_owner, previous_token, previous_end, previous_at) IN (0, 4))
) WITH (fillfactor = 50); -- room beside each row: renewals move no index entry
