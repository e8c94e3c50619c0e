-- Which set-up this is, written last; a store refuses to work with another.
CREATE TABLE IF NOT EXISTS tenure_setup (
    one     INT NOT NULL PRIMARY KEY,
    version INT NOT NULL
) ENGINE = InnoDB COMMENT = 'Tenure: leases and fences';
