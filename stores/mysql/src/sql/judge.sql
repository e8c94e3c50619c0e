-- Part of what admits a term: the mark is looked at twice. First without a lock, as everything that the transaction reads:
-- if that is older than the claim, so is all that it has read, and it must begin again. And whoever is refused so keeps no
-- claim waiting, also if it never rolls back. But for SERIALIZABLE: there each look locks what it sees, shared, and whoever is
-- refused keeps claims waiting until it rolls back. A mark that an operator has raised counts as nobody's yet, but for other
-- leases.
IF asked_resource IS NULL OR asked_lease IS NULL OR asked_token IS NULL THEN
        -- Nothing compares with it, so it would pass by every rule: a driver binds so what is not set.
        SIGNAL SQLSTATE '{unclaimed}'
            SET MESSAGE_TEXT = 'refused: the resource, the lease or the token is NULL; is TENURE_TOKEN set?';
    END IF;
    SELECT IF(lease = asked_lease AND bumped_token = token, NULL, lease), token INTO m_lease, m_token
        FROM tenure_fences WHERE resource = asked_resource;
    IF m_lease = asked_lease AND m_token = asked_token THEN
        -- Shared: transactions of one term run side by side, and a claim waits for all of them.
        SET m_lease = NULL, m_token = NULL;
        SELECT IF(lease = asked_lease AND bumped_token = token, NULL, lease), token INTO m_lease, m_token
            FROM tenure_fences WHERE resource = asked_resource LOCK IN SHARE MODE;
    END IF;
    IF m_lease <> asked_lease THEN
        SIGNAL SQLSTATE '{foreign}' SET MESSAGE_TEXT = 'refused: the resource belongs to another lease; give each lease its own';
    ELSEIF m_token > asked_token THEN
        SIGNAL SQLSTATE '{stale}' SET MESSAGE_TEXT = 'refused: the token is stale, a later term has claimed; stop this work';
    ELSEIF NOT (m_lease <=> asked_lease AND m_token <=> asked_token) THEN
        SIGNAL SQLSTATE '{unclaimed}'
            SET MESSAGE_TEXT = 'refused: the token has not claimed, or not before this transaction began to read';
    END IF;
