-- Refusals are counted apart from the marks, so that counting waits for nobody.
CREATE TABLE IF NOT EXISTS tenure_refusals (
    resource   VARCHAR(255) NOT NULL PRIMARY KEY,
    refused    BIGINT       NOT NULL,
    last_token BIGINT       NOT NULL,
    last_us    BIGINT       NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
