-- One row per lease. A release and an expiry leave it: its token is the floor of the next one. Times are microseconds
-- since 1970 in UTC by the server's clock: numbers, so that no session's time zone and no summer time can change them.
CREATE TABLE IF NOT EXISTS tenure_leases (
    name           VARCHAR(255)  NOT NULL PRIMARY KEY,
    owner          VARCHAR(253)  NOT NULL, -- candidate id, for people
    incarnation    VARCHAR(32)   NOT NULL, -- the real owner, new at every start
    token          BIGINT        NOT NULL, -- max(previous + 1, the server's clock in ms)
    attempt        BIGINT        NOT NULL,
    terms          BIGINT        NOT NULL,
    ttl_ms         BIGINT        NOT NULL,
    created_us     BIGINT        NOT NULL,
    acquired_us    BIGINT        NOT NULL,
    renewed_us     BIGINT        NULL,
    expires_us     BIGINT        NOT NULL,
    released_us    BIGINT        NULL,
    step_down_us   BIGINT        NULL, -- when the holder was asked to step down
    note           VARCHAR(1024) NOT NULL, -- for people
    previous_owner VARCHAR(253)  NULL,
    previous_token BIGINT        NULL,
    previous_end   VARCHAR(8)    NULL,
    previous_us    BIGINT        NULL,
    CONSTRAINT tenure_leases_name CHECK ({tenure_leases_name}),
    CONSTRAINT tenure_leases_owner CHECK ({tenure_leases_owner}),
    CONSTRAINT tenure_leases_incarnation CHECK (CHAR_LENGTH(incarnation) = 32 AND incarnation REGEXP '^[0-9a-f]{32}$'),
    CONSTRAINT tenure_leases_numbers CHECK (token >= 1 AND attempt >= 1 AND terms >= 1 AND ttl_ms BETWEEN 100 AND 86400000),
    CONSTRAINT tenure_leases_times CHECK (created_us >= 1 AND acquired_us >= 1 AND expires_us >= 1
        AND COALESCE(renewed_us, 1) >= 1 AND COALESCE(released_us, 1) >= 1 AND COALESCE(step_down_us, 1) >= 1),
    CONSTRAINT tenure_leases_previous CHECK ({tenure_leases_previous})
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
