-- The tables' rules as set-ups made them with backslashes, which a session's sql_mode may read in another way.
ALTER TABLE tenure_leases DROP CONSTRAINT tenure_leases_name, ADD CONSTRAINT tenure_leases_name CHECK (
    LENGTH(name) BETWEEN 1 AND 255
    AND name NOT REGEXP '[\\x{0}-\\x{1f}\\x{7f}-\\x{9f}]'
    AND name NOT REGEXP '^[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]|[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]$'
    AND name NOT REGEXP '(^|/)[.]{0,2}(/|$)'
);
ALTER TABLE tenure_leases DROP CONSTRAINT tenure_leases_owner, ADD CONSTRAINT tenure_leases_owner CHECK (
    LENGTH(owner) BETWEEN 1 AND 253
    AND owner NOT REGEXP '[\\x{0}-\\x{1f}\\x{7f}-\\x{9f}]'
    AND owner NOT REGEXP '^[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]|[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]$'
    AND owner NOT REGEXP '(^|/)[.]{0,2}(/|$)'
);
ALTER TABLE tenure_leases DROP CONSTRAINT tenure_leases_previous, ADD CONSTRAINT tenure_leases_previous CHECK (
    previous_owner IS NULL AND previous_token IS NULL AND previous_end IS NULL AND previous_us IS NULL
    OR LENGTH(previous_owner) BETWEEN 1 AND 253
    AND previous_owner NOT REGEXP '[\\x{0}-\\x{1f}\\x{7f}-\\x{9f}]'
    AND previous_owner NOT REGEXP '^[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]|[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]$'
    AND previous_owner NOT REGEXP '(^|/)[.]{0,2}(/|$)'
    AND previous_token >= 1 AND previous_end IN ('released', 'expired') AND previous_us >= 1
);
ALTER TABLE tenure_fences DROP CONSTRAINT tenure_fences_resource, ADD CONSTRAINT tenure_fences_resource CHECK (
    LENGTH(resource) BETWEEN 1 AND 255
    AND resource NOT REGEXP '[\\x{0}-\\x{1f}\\x{7f}-\\x{9f}]'
    AND resource NOT REGEXP '^[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]|[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]$'
    AND resource NOT REGEXP '(^|/)[.]{0,2}(/|$)'
);
ALTER TABLE tenure_fences DROP CONSTRAINT tenure_fences_lease, ADD CONSTRAINT tenure_fences_lease CHECK (
    lease IS NULL OR LENGTH(lease) BETWEEN 1 AND 255
    AND lease NOT REGEXP '[\\x{0}-\\x{1f}\\x{7f}-\\x{9f}]'
    AND lease NOT REGEXP '^[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]|[\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]$'
    AND lease NOT REGEXP '(^|/)[.]{0,2}(/|$)'
)
