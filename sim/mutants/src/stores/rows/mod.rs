//! The wrong statements, by store.

mod etcd;
mod mongodb;
mod mysql;
mod nats;
mod postgres;
mod redis;
mod sqlite;

use super::StoreRow;
use std::sync::LazyLock;

/// A wrong statement of the store whose folder has its file.
struct Wrong {
    name: &'static str,
    guarantee: &'static str,
    file: &'static str,
    edits: &'static [[&'static str; 2]],
    noticed_by: &'static [&'static str],
}

const fn row(
    name: &'static str,
    guarantee: &'static str,
    file: &'static str,
    edits: &'static [[&'static str; 2]],
    noticed_by: &'static [&'static str],
) -> Wrong {
    Wrong {
        name,
        guarantee,
        file,
        edits,
        noticed_by,
    }
}

impl Wrong {
    const fn of(&self, store: &'static str) -> StoreRow {
        StoreRow {
            store,
            name: self.name,
            guarantee: self.guarantee,
            file: self.file,
            edits: self.edits,
            noticed_by: self.noticed_by,
        }
    }
}

static ROWS: LazyLock<Vec<StoreRow>> = LazyLock::new(|| {
    let stores = [
        ("sqlite", sqlite::ROWS),
        ("postgres", postgres::ROWS),
        ("mysql", mysql::ROWS),
        ("redis", redis::ROWS),
        ("mongodb", mongodb::ROWS),
        ("etcd", etcd::ROWS),
        ("nats", nats::ROWS),
    ];
    let rows = stores
        .into_iter()
        .flat_map(|(store, rows)| rows.iter().map(move |row| row.of(store)));
    rows.collect()
});

/// Every wrong statement, in the order of the table.
#[must_use]
pub fn store_rows() -> &'static [StoreRow] {
    &ROWS
}
