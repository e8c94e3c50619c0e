-- Which set-up this is, written last; a store refuses to work with another. And, in a second row, a number that tells these tables
-- from those of another server that was set up by itself: replicas have it, and what is restored from a backup.
CREATE TABLE IF NOT EXISTS tenure_setup (
    one     INT NOT NULL PRIMARY KEY,
    version INT NOT NULL
) ENGINE = InnoDB COMMENT = 'Tenure: leases and fences';
