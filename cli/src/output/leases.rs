//! Leases as a table, as lines, as JSON.

use super::table::columns;
use super::{clean, in_json, short};
use crate::housekeeping::is_kept_by_tenure;
use serde_json::{Value, json};
use tenure::contract::{Fault, Lease, Occupancy};
use tenure::{LeaseName, StoreError};

/// One lease that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Row {
    /// It has a record.
    Lease(Box<Lease>),
    /// It was never taken.
    Never(LeaseName),
    /// It has a record that cannot be understood.
    Unreadable {
        /// Its key, escaped.
        key: String,
        /// Why. Any fault but [`Fault::Unreadable`] is one for which the store cannot tell now.
        error: StoreError,
    },
}

/// The leases that were asked for.
pub(crate) type Rows = Vec<Row>;

impl Row {
    /// The name, or what the store shows as the key.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Lease(lease) => lease.name.as_str(),
            Self::Never(name) => name.as_str(),
            Self::Unreadable { key, .. } => key,
        }
    }

    /// Whether Tenure keeps it by itself. Of a record that cannot be understood nobody knows: it is hidden
    /// from nobody.
    pub(crate) fn is_kept_by_tenure(&self) -> bool {
        matches!(self, Self::Lease(lease) if is_kept_by_tenure(lease))
    }

    /// How the lease stands, in a word.
    pub(crate) fn state(&self) -> &'static str {
        match self {
            Self::Never(_) => "never taken",
            Self::Unreadable { error, .. } => match error.fault {
                Fault::Unreadable => "unreadable",
                // The store cannot tell now who holds it.
                _ => "unknown",
            },
            Self::Lease(lease) => match lease.occupancy() {
                Occupancy::Held if lease.asked_to_step_down => "stepping down",
                Occupancy::Held => "held",
                Occupancy::Expired => "expired",
                Occupancy::Vacant => "vacant",
            },
        }
    }

    fn cells(&self) -> [String; 9] {
        let name = clean(self.key());
        let state = self.state().to_owned();
        let Self::Lease(lease) = self else {
            let note = match self {
                Self::Unreadable { error, .. } => clean(&error.message),
                Self::Lease(_) | Self::Never(_) => String::new(),
            };
            let dash = || "-".to_owned();
            return [name, state, dash(), dash(), dash(), dash(), dash(), dash(), note];
        };
        [
            name,
            state,
            match lease.occupancy() {
                Occupancy::Held => clean(&lease.holder.to_string()),
                // Who held it last.
                Occupancy::Expired | Occupancy::Vacant => format!("({})", clean(&lease.holder.to_string())),
            },
            lease.token.to_string(),
            lease.terms.to_string(),
            short(lease.remaining),
            short(lease.held_for),
            short(lease.ttl.duration()),
            clean(lease.note.as_str()),
        ]
    }
}

const HEADINGS: [&str; 9] = [
    "NAME",
    "STATE",
    "HOLDER",
    "TOKEN",
    "TERMS",
    "REMAINING",
    "TERM BEGAN",
    "TTL",
    "NOTE",
];

/// A table with a heading; one line where there is nothing.
pub(crate) fn table_of(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no leases\n".to_owned();
    }
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let mut cells = row.cells();
        if let Row::Lease(_) = row {
            cells[6].push_str(" ago");
        }
        cells
    }));
    columns(&lines)
}

/// One line about one lease.
pub(crate) fn line_of(row: &Row) -> String {
    let (key, state) = (row.key(), row.state());
    clean(&match row {
        Row::Never(_) => format!("{key}: {state}"),
        Row::Unreadable { error, .. } => format!("{key}: {state}: {}", error.message),
        Row::Lease(lease) => match lease.occupancy() {
            Occupancy::Held => format!(
                "{key}: {state} by {}, token {}, {} left of {}",
                lease.holder,
                lease.token,
                short(lease.remaining),
                lease.ttl
            ),
            Occupancy::Expired | Occupancy::Vacant => {
                format!(
                    "{key}: {state}, last held by {}, token {}",
                    lease.holder, lease.token
                )
            }
        },
    })
}

/// One lease for programs: durations in milliseconds, `state` as in the table. Who held it last is its holder
/// only while it is held.
pub(crate) fn json_of(row: &Row) -> Value {
    match row {
        Row::Never(name) => json!({"name": name.as_str(), "state": row.state()}),
        Row::Unreadable { key, error } => {
            json!({"name": key, "state": row.state(), "error": error.message})
        }
        Row::Lease(lease) => {
            let holder = (lease.occupancy() == Occupancy::Held).then_some(&lease.holder);
            json!({
                "name": lease.name.as_str(),
                "state": row.state(),
                "holder": holder.map(|holder| holder.id.as_str()),
                "incarnation": holder.map(|holder| holder.incarnation.to_string()),
                "last_holder": lease.holder.id.as_str(),
                "token": lease.token.number(),
                "terms": lease.terms,
                "remaining_ms": in_json(lease.remaining),
                "began_ago_ms": in_json(lease.held_for),
                "renewed_ago_ms": in_json(lease.renewed_ago),
                "ttl_ms": lease.ttl.as_millis(),
                "asked_to_step_down": lease.asked_to_step_down,
                "note": lease.note.as_str(),
            })
        }
    }
}
