-- What the triggers of guarded tables call: refuses a write, unless the session shows the term that holds the resource.
-- The mark is locked as by entering, so the write's own transaction keeps a claim waiting. Also for programs that know
-- nothing of Tenure: SET @tenure_term = '<token> <lease>' shows the term of what follows.
CREATE PROCEDURE IF NOT EXISTS tenure_admit_{version}(IN asked_resource VARCHAR(255) {text})
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE m_token BIGINT;
    DECLARE asked_token DECIMAL(20, 0);
    DECLARE m_lease, asked_lease VARCHAR(255) {text};
    DECLARE term VARCHAR(300) {text} DEFAULT COALESCE(CAST(@tenure_term AS CHAR(300) CHARACTER SET utf8mb4), '');
    IF term NOT REGEXP '^[0-9]{1,19} .' THEN
        SIGNAL SQLSTATE '{unclaimed}'
            SET MESSAGE_TEXT = 'refused: the table is written only by the term that holds its resource; enter it first';
    END IF;
    SET asked_token = CAST(SUBSTRING_INDEX(term, ' ', 1) AS DECIMAL(20, 0));
    SET asked_lease = LEFT(SUBSTRING(term, LOCATE(' ', term) + 1), 255);
    {judged}
END
