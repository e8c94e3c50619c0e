//! What a drill found, for people and for programs.

use crate::arguments::{Fault, LedgerKind};
use crate::drill::Done;
use crate::verify::Findings;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// What a drill found.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// What kept the ledger.
    pub ledger: LedgerKind,
    /// What is in the ledger.
    pub findings: Findings,
    /// What was done to the instances.
    pub faults: Vec<Done>,
    /// The refusals that instances have reported.
    pub refused: Vec<String>,
    /// How many terms began.
    pub terms: u64,
    /// From the start of the instances to the end of the last.
    pub elapsed: Duration,
}

impl Summary {
    /// Whether the ledger is right, and every freeze ended with a refused write: a freeze that nobody was
    /// refused after has shown nothing.
    pub fn holds(&self) -> bool {
        let shown = |done: &Done| done.fault != Fault::Freeze || done.refused;
        self.findings.hold() && self.faults.iter().all(shown)
    }

    /// Payments a second, the time of the faults included.
    fn rate(&self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a rate for people; fewer payments than 2^52"
        )]
        let payments = self.findings.payments as f64;
        payments / self.elapsed.as_secs_f64()
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "ledger": format!("{:?}", self.ledger).to_lowercase(),
            "findings": self.findings.json(),
            "faults": self.faults.iter().map(Done::json).collect::<Vec<_>>(),
            "refused": self.refused,
            "terms": self.terms,
            "seconds": (self.elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
            "payments_per_second": self.rate().round(),
            "holds": self.holds(),
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = self.findings.rows();
        let mut add = |name: String, value: String| rows.push((name, value));
        add("terms".to_owned(), self.terms.to_string());
        add("refused stale writes".to_owned(), self.refused.len().to_string());
        for done in &self.faults {
            let Done {
                victim,
                settled,
                recovery,
                ..
            } = done;
            let what = match done.fault {
                Fault::None => "nothing",
                Fault::Kill | Fault::Freeze => "another went on after",
                Fault::Stepdown => "batches went on after",
            };
            let refused = if done.refused {
                "; its stale write was refused"
            } else {
                ""
            };
            add(
                format!("{} after payment {settled}", done.fault),
                format!("{victim}; {what} {:.2} s{refused}", recovery.as_secs_f64()),
            );
        }
        add("seconds".to_owned(), format!("{:.1}", self.elapsed.as_secs_f64()));
        add("payments/s".to_owned(), format!("{:.0}", self.rate()));
        f.write_str(&table(&rows))?;
        for refusal in &self.refused {
            writeln!(f, "{refusal}")?;
        }
        f.write_str(match (self.findings.hold(), self.holds()) {
            (true, true) => "HOLDS: every payment is settled exactly once\n",
            (true, false) => "FAILED: the ledger is right, but a freeze ended without a refused write, so it shows nothing\n",
            (false, _) => "FAILED: the ledger is not what the payments make it\n",
        })
    }
}

/// Names and values in two columns.
pub fn table(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter()
        .map(|(name, value)| format!("{name:<width$}  {value}\n"))
        .collect()
}
