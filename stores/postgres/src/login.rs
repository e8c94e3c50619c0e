//! Who logs in, and to which database, where the URL does not say: as libpq takes it.
//!
//! The driver would take the system's user, and no variable. It is settled once, so that the login, the password file's line and what
//! is shown are all of the same user.

use crate::url::invalid;
use std::ffi::OsString;
use tenure_core::StoreError;
use tokio_postgres::Config;

/// Puts user and database into the options. `variable` is one of the environment, and `system_user` whom the process runs as.
///
/// # Errors
/// [`Fault::Invalid`](tenure_core::Fault::Invalid): nobody is named anywhere, or a variable cannot be shown.
pub(crate) fn complete(
    config: &mut Config,
    variable: impl Fn(&str) -> Option<OsString>,
    system_user: impl FnOnce() -> Option<String>,
) -> Result<(), StoreError> {
    let named = |name| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.map(|value| readable(name, value)).transpose()
    };
    if config.get_user().is_none_or(str::is_empty) {
        let user = named("PGUSER")?.or_else(system_user).ok_or_else(|| {
            invalid(
                "the PostgreSQL URL names no user, nor does PGUSER, and the system has no name for the user of this process; write \
                 postgres://user@host/database",
            )
        })?;
        config.user(user);
    }
    // Else it is the user's, as the server takes it.
    if config.get_dbname().is_none_or(str::is_empty) {
        named("PGDATABASE")?.map(|database| config.dbname(database));
    }
    Ok(())
}

fn readable(name: &str, value: OsString) -> Result<String, StoreError> {
    let text = value.into_string().ok();
    text.filter(|text| !text.contains(char::is_control))
        .ok_or_else(|| {
            invalid(&format!(
                "{name} is not UTF-8 on one line; the PostgreSQL URL leaves it to that"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::complete;
    use tokio_postgres::Config;

    #[test]
    fn user_and_database_that_a_url_does_not_have_are_libpqs() {
        let (user, database) = (("PGUSER", "app"), ("PGDATABASE", "bank"));
        for (url, variables, expected) in [
            ("postgres://db", &[][..], ("root", None)),
            ("postgres://db", &[user], ("app", None)),
            ("postgres://db", &[user, database], ("app", Some("bank"))),
            ("postgres://db/ledger", &[user, database], ("app", Some("ledger"))),
            ("postgres://me@db", &[user, database], ("me", Some("bank"))),
            (
                "postgres://db",
                &[("PGUSER", ""), ("PGDATABASE", "")],
                ("root", None),
            ),
        ] {
            let mut config: Config = url.parse().expect("a URL");
            let variable = |asked: &str| {
                let found = variables.iter().find(|(name, _)| *name == asked);
                found.map(|(_, value)| value.into())
            };
            complete(&mut config, variable, || Some("root".to_owned()))
                .unwrap_or_else(|error| panic!("{error}"));
            let (user, database) = expected;
            assert_eq!(
                (config.get_user(), config.get_dbname()),
                (Some(user), database),
                "{url} {variables:?}"
            );
        }
    }

    #[test]
    fn url_for_which_nobody_names_a_user_is_refused() {
        let complete = |name: &str, system_user: Option<&str>| {
            let variable = |asked: &str| (asked == "PGUSER").then(|| name.into());
            let mut config: Config = "postgres://db".parse().expect("a URL");
            complete(&mut config, variable, || system_user.map(str::to_owned))
        };
        assert!(complete("", Some("root")).is_ok());
        for (name, user) in [("", None), ("a\nb", Some("root"))] {
            let error = complete(name, user).expect_err("refused");
            assert!(error.message.contains("PGUSER"), "{error}");
        }
    }
}
