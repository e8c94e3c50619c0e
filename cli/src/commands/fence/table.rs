//! Tables that refuse stale writers by themselves.

use super::FencePlace;
#[cfg(feature = "sqlite")]
use super::Making;
use crate::arguments::TableArguments;
use crate::exit::{Code, Failure};
use serde_json::Value;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
use tenure::Leases;
use tenure::ResourceName;

/// Whoever guards a table asks after no lease.
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
const NO_LEASES: Leases = Leases::Elsewhere;

impl FencePlace {
    /// Makes a table refuse stale writers; answers what it takes from now on, and what no more, in words and
    /// in JSON.
    ///
    /// # Errors
    /// What the fence says.
    pub(crate) async fn guard(
        &self,
        resource: &ResourceName,
        table: &TableArguments,
    ) -> Result<(String, Value), Failure> {
        let url = self.table_url()?;
        match url.split(':').next() {
            #[cfg(feature = "sqlite")]
            Some("sqlite") => {
                let fenced = fenced_table(resource, table);
                let fence = super::place::sqlite(&url, NO_LEASES, Making::WhereMissing)?;
                let fence = fence.expect("it was made where it was missing");
                let replaced = fence.protect(&fenced).map_err(super::refusal)?;
                Ok(instead_of(replaced, rows_with_the_token(resource, table)))
            }
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => {
                let fence = tenure::postgres::PostgresFence::connect(&url, NO_LEASES).await?;
                let replaced = fence
                    .guard(&table.table, resource)
                    .await
                    .map_err(super::refusal)?;
                Ok(instead_of(replaced, transactions_that_entered(resource, table)))
            }
            #[cfg(feature = "mysql")]
            Some("mysql" | "mariadb") => {
                let fence = tenure::mysql::MysqlFence::connect(&url, NO_LEASES).await?;
                let replicas = match fence.log_has_statements().await.map_err(super::refusal)? {
                    true => REPLICAS_JUDGE,
                    false => "",
                };
                let replaced = fence
                    .guard(&table.table, resource)
                    .await
                    .map_err(super::refusal)?;
                Ok(instead_of(
                    replaced,
                    sessions_that_show_the_term(resource, table, replicas),
                ))
            }
            _ => Err(unguardable(resource.as_str(), table)),
        }
    }

    /// Removes what `guard` has made.
    ///
    /// # Errors
    /// What the fence says.
    pub(crate) async fn unguard(&self, table: &TableArguments) -> Result<(), Failure> {
        let url = self.table_url()?;
        match url.split(':').next() {
            #[cfg(feature = "sqlite")]
            Some("sqlite") => {
                let any = ResourceName::new("any").expect("this is a name");
                match super::place::sqlite(&url, NO_LEASES, Making::Never)? {
                    Some(fence) => fence
                        .unprotect(&fenced_table(&any, table))
                        .map_err(super::refusal),
                    None => Ok(()),
                }
            }
            #[cfg(feature = "postgres")]
            Some("postgres" | "postgresql") => {
                let fence = tenure::postgres::PostgresFence::connect(&url, NO_LEASES).await?;
                fence.unguard(&table.table).await.map_err(super::refusal)
            }
            #[cfg(feature = "mysql")]
            Some("mysql" | "mariadb") => {
                let fence = tenure::mysql::MysqlFence::connect(&url, NO_LEASES).await?;
                fence.unguard(&table.table).await.map_err(super::refusal)
            }
            _ => Err(unguardable("any", table)),
        }
    }

    /// The leases' own file has no table of the user's, so there a slip is more likely than a wish. A
    /// database may well hold both.
    fn table_url(&self) -> Result<String, Failure> {
        let url = self.url();
        let databases = ["postgres:", "postgresql:", "mysql:", "mariadb:"];
        let database = databases.iter().any(|scheme| url.starts_with(scheme));
        match self {
            Self::Given(_) if url.starts_with("sqlite:") => Ok(url),
            Self::Given(_) | Self::BesideLeases(_) if database => Ok(url),
            Self::Given(_) | Self::BesideLeases(_) => Err(Failure::new(
                Code::Usage,
                "only a table of an SQLite file, of PostgreSQL or of MySQL can be guarded; name it: --fence sqlite:PATH, --fence \
                 postgres://HOST/DATABASE or --fence mysql://HOST/DATABASE",
            )),
        }
    }
}

/// The same, with the resource whose guard was replaced: a slip of another team's, as like as not, whose job
/// learns of it at its next write.
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
fn instead_of(replaced: Option<ResourceName>, guarded: (String, Value)) -> (String, Value) {
    let (told, mut in_json) = guarded;
    let Some(replaced) = replaced else {
        return (told, in_json);
    };
    in_json["instead_of"] = replaced.as_str().into();
    let told = format!(
        "{told}; this is instead of \"{replaced}\", for which it was guarded until now: who writes by that one's mark is refused"
    );
    (told, in_json)
}

#[cfg(feature = "sqlite")]
fn rows_with_the_token(resource: &ResourceName, table: &TableArguments) -> (String, Value) {
    let told = format!(
        "table \"{}\": refuses rows whose \"{}\" is not the token that has claimed \"{resource}\"; every INSERT \
         and UPDATE must set it, and a DELETE needs its negative set before",
        table.table, table.column
    );
    let in_json = serde_json::json!({"table": table.table, "column": table.column, "resource": resource.as_str(), "guarded": true});
    (told, in_json)
}

#[cfg(feature = "postgres")]
fn transactions_that_entered(resource: &ResourceName, table: &TableArguments) -> (String, Value) {
    let told = format!(
        "table \"{}\": refuses every transaction that has not entered \"{resource}\" with the token that has \
         claimed it; call the schema's enter(resource, lease, token) first in each that writes",
        table.table
    );
    let in_json = serde_json::json!({"table": table.table, "resource": resource.as_str(), "guarded": true});
    (told, in_json)
}

/// Where the binary log may have statements.
#[cfg(feature = "mysql")]
const REPLICAS_JUDGE: &str = "; the binary log may have statements (binlog_format), and a replica runs its own triggers for these: it \
                              needs Tenure's tables and procedures, and whoever guards the table, or its replication ends";

#[cfg(feature = "mysql")]
fn sessions_that_show_the_term(
    resource: &ResourceName,
    table: &TableArguments,
    replicas: &str,
) -> (String, Value) {
    let told = format!(
        "table \"{}\": refuses every session that does not show the term that has claimed \"{resource}\"; call \
         tenure_enter_1(resource, lease, token) first in each transaction that writes{replicas}",
        table.table
    );
    let in_json = serde_json::json!({"table": table.table, "resource": resource.as_str(), "guarded": true});
    (told, in_json)
}

#[cfg(feature = "sqlite")]
fn fenced_table(resource: &ResourceName, table: &TableArguments) -> tenure::sqlite::FencedTable {
    tenure::sqlite::FencedTable::new(&table.table, resource).column(&table.column)
}

fn unguardable(resource: &str, table: &TableArguments) -> Failure {
    let message = format!(
        "resource \"{resource}\": the store of table \"{}\" is not compiled in",
        table.table
    );
    Failure::new(Code::Configuration, message)
}
