//! Who logs in where the URL does not say: whom libpq takes.
//!
//! The driver would take the system's user, and no variable. It is settled once, so that the login, the
//! password file's line and what is shown are all of the same user. A database that is not named is the
//! user's, as the server takes it, where the URL names that user. `PGDATABASE` is not read, and no user that
//! the URL leaves open decides on the database: leases would be elsewhere for whoever runs without the
//! variable, or as somebody else.

use crate::url::invalid;
use std::ffi::OsString;
use tenure_core::StoreError;
use tokio_postgres::Config;

/// Puts the user into the options. `named` is what `PGUSER` says, and `system_user` whom the process runs as.
///
/// # Errors
/// [`Fault::Invalid`](tenure_core::Fault::Invalid): nobody is named anywhere, or `PGUSER` cannot be shown; or
/// the URL names neither a user nor a database.
pub(crate) fn complete(
    config: &mut Config,
    named: Option<OsString>,
    system_user: impl FnOnce() -> Option<String>,
) -> Result<(), StoreError> {
    if config.get_user().is_some_and(|user| !user.is_empty()) {
        return Ok(());
    }
    if config.get_dbname().is_none_or(str::is_empty) {
        return Err(invalid(
            "the PostgreSQL URL names neither a database nor a user: the leases would be in another database for whoever runs \
             this as somebody else; write postgres://host/database",
        ));
    }
    let named = named.filter(|user| !user.is_empty()).map(readable).transpose()?;
    let user = named.or_else(system_user).ok_or_else(|| {
        invalid(
            "the PostgreSQL URL names no user, nor does PGUSER, and the system has no name for the user of this process; write \
             postgres://user@host/database",
        )
    })?;
    config.user(user);
    Ok(())
}

fn readable(user: OsString) -> Result<String, StoreError> {
    let text = user.into_string().ok();
    text.filter(|text| !text.contains(char::is_control))
        .ok_or_else(|| {
            invalid("PGUSER is not UTF-8 on one line, and the PostgreSQL URL leaves the user to it")
        })
}

#[cfg(test)]
mod tests {
    use super::complete;
    use tokio_postgres::Config;

    fn completed(url: &str, named: Option<&str>, system_user: Option<&str>) -> Result<Config, String> {
        let mut config: Config = url.parse().expect("a URL");
        let system_user = || system_user.map(str::to_owned);
        complete(&mut config, named.map(Into::into), system_user).map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn user_that_a_url_does_not_have_is_libpqs() {
        for (url, named, expected) in [
            ("postgres://db/ledger", None, ("root", Some("ledger"))),
            ("postgres://db/ledger", Some(""), ("root", Some("ledger"))),
            ("postgres://db/ledger", Some("app"), ("app", Some("ledger"))),
            ("postgres://me@db", Some("app"), ("me", None)),
        ] {
            let config = completed(url, named, Some("root")).unwrap_or_else(|error| panic!("{error}"));
            let (user, database) = expected;
            let told = (config.get_user(), config.get_dbname());
            assert_eq!(told, (Some(user), database), "{url} {named:?}");
        }
    }

    /// Two hosts with one URL, whose services run as different users, would each have a leader.
    #[test]
    fn url_whose_database_would_be_that_of_whoever_runs_is_refused() {
        for url in ["postgres://db", "postgres://db/", "postgres://@db/"] {
            let error = completed(url, Some("app"), Some("root")).expect_err("refused");
            assert!(error.contains("neither a database nor a user"), "{url}: {error}");
        }
    }

    #[test]
    fn url_for_which_nobody_names_a_user_is_refused() {
        for (named, user) in [("", None), ("a\nb", Some("root"))] {
            let error = completed("postgres://db/ledger", Some(named), user).expect_err("refused");
            assert!(error.contains("PGUSER"), "{error}");
        }
    }
}
