-- One row per lease. A release and an expiry leave it: its token is the floor of the next one.
CREATE TABLE IF NOT EXISTS {schema}.leases (
    name               text COLLATE "C" PRIMARY KEY CHECK ({name_fits}),
    owner              text        NOT NULL CHECK ({owner_fits}), -- candidate id, for people
    incarnation        text        NOT NULL CHECK (incarnation ~ '^[0-9a-f]{32}$'), -- the real owner, new at every start
    token              bigint      NOT NULL CHECK (token >= 1), -- max(previous + 1, the server's clock in ms)
    attempt            bigint      NOT NULL CHECK (attempt >= 1),
    terms              bigint      NOT NULL CHECK (terms >= 1),
    ttl_ms             bigint      NOT NULL CHECK (ttl_ms BETWEEN 100 AND 86400000),
    created_at         timestamptz NOT NULL CHECK (isfinite(created_at)),
    acquired_at        timestamptz NOT NULL CHECK (isfinite(acquired_at)),
    renewed_at         timestamptz CHECK (isfinite(renewed_at)),
    expires_at         timestamptz NOT NULL CHECK (isfinite(expires_at)),
    released_at        timestamptz CHECK (isfinite(released_at)),
    step_down_asked_at timestamptz,
    note               text        NOT NULL, -- for people; a backslash is \\, a NUL is \0
    previous_owner     text CHECK ({previous_owner_fits}),
    previous_token     bigint CHECK (previous_token >= 1),
    previous_end       text CHECK (previous_end IN ('released', 'expired')),
    previous_at        timestamptz CHECK (isfinite(previous_at)),
    CONSTRAINT previous_is_whole CHECK (num_nulls(previous_owner, previous_token, previous_end, previous_at) IN (0, 4))
) WITH (fillfactor = 50); -- room beside each row: renewals move no index entry
