//! Values as the server sends them: texts, or null, and of a prepared statement numbers as well.

use mysql_async::{Row, Value};

/// The text in a column; `None` for null, and for what is none.
pub(crate) fn text(row: &Row, column: usize) -> Option<&str> {
    match row.as_ref(column)? {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// Whether there is a null in a column.
pub(crate) fn is_null(row: &Row, column: usize) -> bool {
    matches!(row.as_ref(column), Some(Value::NULL))
}

/// The whole number in a column; `None` for null, and for what is none.
pub(crate) fn number(row: &Row, column: usize) -> Option<i64> {
    match row.as_ref(column)? {
        Value::Int(number) => Some(*number),
        _ => text(row, column)?.parse().ok(),
    }
}
