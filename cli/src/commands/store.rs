//! `tenure store`.

use crate::arguments::{Form, StoreArguments, StoreDeed};
use crate::exit::{Code, Failure};
use crate::output;
use crate::place::{Credentials, Place};
use serde_json::json;
use tenure::contract::StoreTraits;

/// What becomes of the statements of a set-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Statements {
    /// They are run.
    Run,
    /// They are printed.
    Printed,
}

/// Does what was asked of the store.
pub(crate) async fn store(
    arguments: &StoreArguments,
    store: Option<&str>,
    form: Form,
) -> Result<u8, Failure> {
    let StoreDeed::Init { print } = arguments.deed;
    let statements = if print {
        Statements::Printed
    } else {
        Statements::Run
    };
    let place = Place::find(store)?;
    // Not passed on to anybody: the password stays in it.
    let url = place.for_command(Credentials::Shared);
    match url.split(':').next() {
        #[cfg(feature = "postgres")]
        Some("postgres" | "postgresql") => postgres(&url, statements, form).await,
        #[cfg(feature = "mysql")]
        Some("mysql" | "mariadb") => mysql(&url, statements, form).await,
        #[cfg(feature = "redis")]
        Some("redis+quorum" | "rediss+quorum") if statements == Statements::Run => {
            tenure::redis::QuorumStore::init(&url).await?;
            let store = place.open().await?;
            said(&store.traits(), form)
        }
        _ if statements == Statements::Printed => Err(Failure::new(
            Code::Usage,
            "this store needs no statements to be set up; it makes what it needs with the first lease",
        )),
        _ => {
            let store = place.open().await?;
            said(&store.traits(), form)
        }
    }
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str, statements: Statements, form: Form) -> Result<u8, Failure> {
    use tenure::LeaseStore as _;
    use tenure::postgres::PostgresStore;
    if statements == Statements::Printed {
        output::print(&PostgresStore::init_statements(url)?)?;
        return Ok(0);
    }
    PostgresStore::init(url).await?;
    // What was made is looked at as every candidate will.
    let store = PostgresStore::connect(url).await?;
    said(&store.traits(), form)
}

#[cfg(feature = "mysql")]
async fn mysql(url: &str, statements: Statements, form: Form) -> Result<u8, Failure> {
    use tenure::LeaseStore as _;
    use tenure::mysql::MysqlStore;
    if statements == Statements::Printed {
        output::print(&MysqlStore::init_statements(url)?)?;
        return Ok(0);
    }
    MysqlStore::init(url).await?;
    let store = MysqlStore::connect(url).await?;
    said(&store.traits(), form)
}

fn said(traits: &StoreTraits, form: Form) -> Result<u8, Failure> {
    let StoreTraits { kind, location, .. } = traits;
    output::print(&match form {
        Form::Text => output::line(&format!("{location}: is set up for leases and fences")),
        Form::Json => format!(
            "{}\n",
            json!({"store": {"kind": kind, "location": location}, "ready": true})
        ),
    })?;
    Ok(0)
}
