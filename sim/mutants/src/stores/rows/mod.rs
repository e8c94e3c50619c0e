//! The wrong statements, by store.

mod sqlite;

use super::StoreRow;
use std::sync::LazyLock;

static ROWS: LazyLock<Vec<StoreRow>> = LazyLock::new(|| {
    [
        sqlite::ROWS,
    ]
    .concat()
});

/// Every wrong statement, in the order of the table.
#[must_use]
pub fn store_rows() -> &'static [StoreRow] {
    &ROWS
}
