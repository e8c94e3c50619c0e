-- Admits a term into the transaction that calls it, or raises. For every language: call it first in each transaction that
-- writes. Outside a transaction it admits nothing that follows.
CREATE PROCEDURE IF NOT EXISTS tenure_enter_{version}(
    IN asked_resource VARCHAR(255) {text}, IN asked_lease VARCHAR(255) {text}, IN asked_token BIGINT
)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE m_token BIGINT;
    DECLARE m_lease VARCHAR(255) {text};
    SET @tenure_term = NULL;
    {judged}
    SET @tenure_term = CONCAT(asked_token, ' ', asked_lease);
END
