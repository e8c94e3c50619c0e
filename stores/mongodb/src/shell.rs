//! How a person reaches the collection in `mongosh`, whatever it is called: `db.job-leases` is a subtraction,
//! and `db.stats` a command.

/// What stands before a method of the collection.
pub(crate) fn in_the_shell(collection: &str) -> String {
    format!("db.getCollection({collection:?})")
}
