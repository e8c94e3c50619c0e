-- One row per protected resource. Transactions of the term that holds it lock it together; a claim waits for them.
CREATE TABLE IF NOT EXISTS tenure_fences (
    resource       VARCHAR(255) NOT NULL PRIMARY KEY,
    lease          VARCHAR(255) NULL, -- whose tokens these are; null until the first claim
    token          BIGINT       NOT NULL, -- the mark: of the latest term that claimed; only rises
    claimed_us     BIGINT       NOT NULL,
    previous_token BIGINT       NULL,
    bumped_token   BIGINT       NULL, -- while it equals the mark, an operator has raised it, and nobody has claimed it yet
    CONSTRAINT tenure_fences_resource CHECK ({tenure_fences_resource}),
    CONSTRAINT tenure_fences_lease CHECK ({tenure_fences_lease}),
    CONSTRAINT tenure_fences_token CHECK (token >= 1)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
