-- Mends what a table of an earlier set-up lacks.
SET @tenure_later = CONCAT_WS(', ',
    {each});
SET @tenure_later = IF(@tenure_later = '', 'DO 0', CONCAT('ALTER TABLE {table} ', @tenure_later));
PREPARE tenure_later FROM @tenure_later;
EXECUTE tenure_later;
DEALLOCATE PREPARE tenure_later;
