//! The file of payments.

use crate::Outcome;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

/// One payment: a line of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payment {
    /// Its number; the file counts from 1.
    pub id: u64,
    /// Who pays.
    pub debtor: u32,
    /// Who is paid.
    pub creditor: u32,
    /// How much, in cents.
    pub cents: i64,
}

/// All payments of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaymentFile {
    /// The payments, in their order.
    pub payments: Vec<Payment>,
    /// What tells it from every other file.
    pub checksum: Checksum,
}

/// FNV-1a, of 64 bits: tells one file from another, and protects against nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checksum(u64);

impl Checksum {
    /// Of no bytes.
    pub const START: Self = Self(0xCBF2_9CE4_8422_2325);
    const PRIME: u64 = 0x0000_0100_0000_01B3;

    /// With these bytes after those before.
    fn with(self, bytes: &[u8]) -> Self {
        let one = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(Self::PRIME);
        Self(bytes.iter().fold(self.0, one))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Payments that are settled in one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// How many payments of the file come before it.
    pub start: u64,
    /// The payments.
    pub payments: &'a [Payment],
}

impl<'a> Batch<'a> {
    /// The next batch after `start` payments; `None` at the end of the file.
    pub fn after(file: &'a [Payment], start: u64, size: u64) -> Option<Self> {
        let rest = file
            .get(usize::try_from(start).ok()?..)
            .filter(|rest| !rest.is_empty())?;
        let size = usize::try_from(size).map_or(rest.len(), |size| size.min(rest.len()));
        Some(Self {
            start,
            payments: &rest[..size],
        })
    }

    /// The checkpoint after it.
    pub fn end(&self) -> u64 {
        self.start + self.payments.len() as u64
    }
}

/// What payments do to the balance of each account they touch, in cents.
pub fn movements(payments: &[Payment]) -> BTreeMap<u32, i64> {
    let mut movements = BTreeMap::new();
    for payment in payments {
        *movements.entry(payment.debtor).or_default() -= payment.cents;
        *movements.entry(payment.creditor).or_default() += payment.cents;
    }
    movements
}

/// Writes a file of payments and answers with a line about it.
pub fn generate(path: &Path, count: u64, seed: u64) -> Outcome<String> {
    let file = fs::File::create(path).map_err(|error| told(path, &error))?;
    let mut file = BufWriter::new(file);
    let mut checksum = Checksum::START;
    let mut line = Vec::new();
    let mut dice = Dice::new(seed);
    line.extend_from_slice(HEADER.as_bytes());
    for id in 0..=count {
        if id > 0 {
            let debtor = dice.below(ACCOUNTS);
            // Never the debtor itself.
            let creditor = (debtor + 1 + dice.below(ACCOUNTS - 1)) % ACCOUNTS;
            let cents = 1 + dice.below(CENTS_MAX);
            write!(line, "{id},{debtor},{creditor},{cents}")?;
        }
        line.push(b'\n');
        checksum = checksum.with(&line);
        file.write_all(&line).map_err(|error| told(path, &error))?;
        line.clear();
    }
    file.flush().map_err(|error| told(path, &error))?;
    Ok(format!(
        "{count} payments, seed {seed}, checksum {checksum}: {}",
        path.display()
    ))
}

/// Reads a file of payments.
pub fn read(path: &Path) -> Outcome<PaymentFile> {
    let text = fs::read_to_string(path).map_err(|error| told(path, &error))?;
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(format!(
            "{} does not begin with \"{HEADER}\"; settlement generate writes such a file",
            path.display()
        )
        .into());
    }
    let payments = (1..)
        .zip(lines)
        .map(|(id, line)| {
            parse(line).filter(|payment| payment.id == id).ok_or_else(|| {
                format!(
                    "{}: payment {id} is \"{line}\", not id,debtor,creditor,cents",
                    path.display()
                )
                .into()
            })
        })
        .collect::<Outcome<Vec<_>>>()?;
    Ok(PaymentFile {
        payments,
        checksum: Checksum::START.with(text.as_bytes()),
    })
}

fn parse(line: &str) -> Option<Payment> {
    let mut fields = line.split(',');
    let payment = Payment {
        id: fields.next()?.parse().ok()?,
        debtor: fields.next()?.parse().ok()?,
        creditor: fields.next()?.parse().ok()?,
        cents: fields.next()?.parse().ok()?,
    };
    fields.next().is_none().then_some(payment)
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Numbers from a seed: SplitMix64, the same on every machine.
pub struct Dice(u64);

impl Dice {
    /// Dice that always fall the same way.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `limit` − 1.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        u32::try_from(mixed % u64::from(limit)).expect("a remainder is below its 32-bit divisor")
    }
}

const HEADER: &str = "id,debtor,creditor,cents";

/// Accounts that pay and are paid.
const ACCOUNTS: u32 = 1_000;

/// Largest payment, in cents.
const CENTS_MAX: u32 = 1_000_000;
