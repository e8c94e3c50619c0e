//! What the tables hold names, owners and resources to.

use crate::schema::hexadecimal;

/// A constraint of a table whose text an earlier Tenure made in another way.
pub(crate) struct Rule {
    pub(crate) table: &'static str,
    /// Also of the hole in the statement that makes the table.
    pub(crate) name: &'static str,
    pub(crate) check: String,
}

/// All of them.
pub(crate) fn rules() -> [Rule; 5] {
    let previous = fits("previous_owner", 253);
    let of = |table, name, check| Rule { table, name, check };
    [
        of("tenure_leases", "tenure_leases_name", fits("name", 255)),
        of("tenure_leases", "tenure_leases_owner", fits("owner", 253)),
        of(
            "tenure_leases",
            "tenure_leases_previous",
            format!(
                "previous_owner IS NULL AND previous_token IS NULL AND previous_end IS NULL AND previous_us IS NULL \
                 OR {previous} AND previous_token >= 1 AND previous_end IN ('released', 'expired') AND previous_us >= 1"
            ),
        ),
        of("tenure_fences", "tenure_fences_resource", fits("resource", 255)),
        of(
            "tenure_fences",
            "tenure_fences_lease",
            format!("lease IS NULL OR {}", fits("lease", 255)),
        ),
    ]
}

/// The rules of `LeaseName` and its like, for a column. MySQL and MariaDB have different regular expressions;
/// these mean the same to both.
fn fits(column: &str, bytes_max: u32) -> String {
    const WHITE: &str =
        r"\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}";
    let control = pattern(r"[\x{0}-\x{1f}\x{7f}-\x{9f}]");
    let at_an_end = pattern(&format!("^[{WHITE}]|[{WHITE}]$"));
    format!(
        "LENGTH({column}) BETWEEN 1 AND {bytes_max} AND {column} NOT REGEXP {control} AND {column} NOT REGEXP {at_an_end} \
         AND {column} NOT REGEXP '(^|/)[.]{{0,2}}(/|$)'"
    )
}

/// A regular expression that has backslashes. MySQL keeps a constraint as text, and whatever session comes to
/// open the table reads that anew, for itself and for those that come after it: as a literal it would be
/// another expression by one whose `sql_mode` has `NO_BACKSLASH_ESCAPES`. Numbers mean the same to all.
fn pattern(regular: &str) -> String {
    format!("CONVERT(0x{} USING utf8mb4)", hexadecimal(regular))
}

#[cfg(test)]
mod tests {
    use super::rules;

    #[test]
    fn no_rule_has_anything_that_a_mode_of_a_session_reads_in_another_way() {
        for rule in rules() {
            for unsure in ['\\', '"', '`'] {
                assert!(!rule.check.contains(unsure), "{}: {}", rule.name, rule.check);
            }
            assert!(!rule.check.contains("||"), "{}: {}", rule.name, rule.check);
        }
    }
}
