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

static ROWS: LazyLock<Vec<StoreRow>> = LazyLock::new(|| {
    [
        sqlite::ROWS,
        postgres::ROWS,
        mysql::ROWS,
        redis::ROWS,
        mongodb::ROWS,
        etcd::ROWS,
        nats::ROWS,
    ]
    .concat()
});

/// Every wrong statement, in the order of the table.
#[must_use]
pub fn store_rows() -> &'static [StoreRow] {
    &ROWS
}
