//! Checks a ledger against the file of payments: reads every row, and trusts no checkpoint.

use crate::Outcome;
use crate::arguments::{Output, VerifyOptions};
use crate::ledger::{self, Committed, Fencing, Ledger};
use crate::payments::{self, Payment, movements};
use serde_json::{Value, json};
use std::process::ExitCode;

/// What a ledger holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    /// Payments in the file.
    pub payments: u64,
    /// Of these, how many have exactly one row.
    pub settled_once: u64,
    /// Of these, how many have no row.
    pub missing: u64,
    /// Of these, how many have two rows or more.
    pub doubled: u64,
    /// Rows that are not in the file, or not as the file has them.
    pub foreign: u64,
    /// Accounts that the payments touch.
    pub accounts: u64,
    /// Accounts, these and others, whose balance is not what the payments make it.
    pub accounts_off: u64,
    /// The sum of all balances, in cents: what one account loses another gains, so it is zero.
    pub sum_of_balances: i64,
    /// Committed transactions.
    pub batches: u64,
    /// Places where a batch of an earlier term comes after one of a later term.
    pub out_of_order: u64,
    /// The terms that wrote, by token.
    pub terms: Vec<TermFindings>,
}

/// What one term wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TermFindings {
    /// Its token.
    pub token: u64,
    /// Its instance.
    pub instance: String,
    /// Its transactions.
    pub batches: u64,
    /// Payments in them.
    pub payments: u64,
}

/// Checks the ledger that the options name, prints, and answers whether it holds.
pub async fn run(options: &VerifyOptions) -> Outcome<ExitCode> {
    let payments = payments::read(&options.file)?.payments;
    let ledger = ledger::open(&options.ledger, Fencing::On).await?;
    let findings = check(&*ledger, &payments).await?;
    match options.output {
        Output::Text => print!("{}", crate::summary::table(&findings.rows())),
        Output::Json => println!("{:#}", findings.json()),
    }
    Ok(if findings.hold() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Checks a ledger.
pub async fn check(ledger: &dyn Ledger, payments: &[Payment]) -> Outcome<Findings> {
    let mut rows = vec![0_u32; payments.len()];
    let mut foreign = 0;
    ledger
        .each_row(&mut |row| {
            let index = usize::try_from(row.payment.id)
                .ok()
                .and_then(|id| id.checked_sub(1));
            match index.filter(|index| payments.get(*index) == Some(&row.payment)) {
                Some(index) => rows[index] += 1,
                None => foreign += 1,
            }
        })
        .await?;
    let count = |wanted: fn(&u32) -> bool| rows.iter().filter(|rows| wanted(rows)).count() as u64;

    let expected = movements(payments);
    let balances = ledger.balances().await?;
    let balance = |account| balances.get(account).copied().unwrap_or(0);
    let off = expected
        .iter()
        .filter(|(account, cents)| balance(account) != **cents)
        .count();
    let unexpected = balances
        .keys()
        .filter(|account| !expected.contains_key(account))
        .count();

    let batches = ledger.batches().await?;
    Ok(Findings {
        payments: payments.len() as u64,
        settled_once: count(|rows| *rows == 1),
        missing: count(|rows| *rows == 0),
        doubled: count(|rows| *rows > 1),
        foreign,
        accounts: expected.len() as u64,
        accounts_off: (off + unexpected) as u64,
        sum_of_balances: balances.values().sum(),
        batches: batches.len() as u64,
        out_of_order: out_of_order(&batches),
        terms: terms(&batches),
    })
}

/// The fence admits tokens in rising order, so along the file they rise, too.
fn out_of_order(batches: &[Committed]) -> u64 {
    let rises = |pair: &[Committed]| {
        pair[0].start + pair[0].payments <= pair[1].start && pair[0].token <= pair[1].token
    };
    batches.windows(2).filter(|pair| !rises(pair)).count() as u64
}

fn terms(batches: &[Committed]) -> Vec<TermFindings> {
    let mut terms: Vec<TermFindings> = Vec::new();
    for batch in batches {
        let term = match terms.iter_mut().find(|term| term.token == batch.token) {
            Some(term) => term,
            None => {
                terms.push(TermFindings {
                    token: batch.token,
                    instance: batch.instance.clone(),
                    batches: 0,
                    payments: 0,
                });
                terms.last_mut().expect("one was just pushed")
            }
        };
        term.batches += 1;
        term.payments += batch.payments;
    }
    terms.sort_by_key(|term| term.token);
    terms
}

impl Findings {
    /// Whether every payment is settled exactly once, and every balance is right.
    pub fn hold(&self) -> bool {
        self.settled_once == self.payments
            && [
                self.missing,
                self.doubled,
                self.foreign,
                self.accounts_off,
                self.out_of_order,
            ] == [0; 5]
            && self.sum_of_balances == 0
    }

    /// For people: names and values.
    pub fn rows(&self) -> Vec<(String, String)> {
        let row = |name: &str, value: &dyn std::fmt::Display| (name.to_owned(), value.to_string());
        let mut rows = vec![
            row("payments", &self.payments),
            row("settled exactly once", &self.settled_once),
            row("missing", &self.missing),
            row("doubled", &self.doubled),
            row("foreign rows", &self.foreign),
            row("accounts", &self.accounts),
            row("accounts off", &self.accounts_off),
            row("sum of balances", &self.sum_of_balances),
            row("batches", &self.batches),
            row("batches out of order", &self.out_of_order),
            row("terms that wrote", &self.terms.len()),
        ];
        rows.extend(self.terms.iter().map(|term| {
            let TermFindings {
                token,
                instance,
                batches,
                payments,
            } = term;
            row(
                &format!("  token {token}"),
                &format!("{instance}: {payments} payments in {batches} batches"),
            )
        }));
        rows
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let terms: Vec<Value> = self
            .terms
            .iter()
            .map(|term| {
                let TermFindings {
                    token,
                    instance,
                    batches,
                    payments,
                } = term;
                json!({ "token": token, "instance": instance, "batches": batches, "payments": payments })
            })
            .collect();
        json!({
            "payments": self.payments,
            "settled_once": self.settled_once,
            "missing": self.missing,
            "doubled": self.doubled,
            "foreign": self.foreign,
            "accounts": self.accounts,
            "accounts_off": self.accounts_off,
            "sum_of_balances": self.sum_of_balances,
            "batches": self.batches,
            "out_of_order": self.out_of_order,
            "terms": terms,
            "holds": self.hold(),
        })
    }
}
