//! The planted bugs, by what they spoil.

mod beginning;
mod belief;
mod ending;
mod fence;
mod leaving;
mod observed;
mod rights;
mod token;
mod trust;
mod waiting;

use crate::Row;
use std::sync::LazyLock;

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    [
        trust::ROWS,
        belief::ROWS,
        beginning::ROWS,
        ending::ROWS,
        leaving::ROWS,
        waiting::ROWS,
        token::ROWS,
        rights::ROWS,
        observed::ROWS,
        fence::ROWS,
    ]
    .concat()
});

/// Every planted bug, in the order of the table.
#[must_use]
pub fn rows() -> &'static [Row] {
    &ROWS
}
