//! Data behind a fence, that whoever leads by a cluster writes to.
use mongodb::Client;
use mongodb::bson::{Document, doc};
use std::time::Duration;
use tenure::contract::{Fence, ResourceName, Term};
use tenure::etcd::{EtcdFence, Fenced, FencedTransaction};
use tenure::mongodb::MongoFence;
use tenure::nats::NatsFence;

/// A primary that is cut off waits for its majority without end.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(20);

pub fn ledger() -> ResourceName {
    ResourceName::new("ledger").unwrap()
}

/// A fence with data behind it.
pub enum Data {
    Etcd(EtcdFence),
    Mongo(MongoFence, Client),
    Nats(NatsFence),
}

impl Data {
    pub fn fence(&self) -> &dyn Fence {
        match self {
            Data::Etcd(fence) => fence,
            Data::Mongo(fence, _) => fence,
            Data::Nats(fence) => fence,
        }
    }

    /// Writes behind the fence; what keeps it from that.
    pub async fn write(&self, term: &Term) -> Result<(), String> {
        match self {
            Data::Etcd(fence) => {
                let transaction = FencedTransaction::new().put("ledger", term.token.to_string());
                match fence.write(&ledger(), term, &transaction).await {
                    Ok(Fenced::Written { .. }) => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            }
            Data::Mongo(fence, client) => {
                let written = write_to_mongodb(fence, client, term);
                let written = tokio::time::timeout(CONFIRMED_WITHIN, written).await;
                written.unwrap_or_else(|_| Err("it was not confirmed".to_owned()))
            }
            Data::Nats(fence) => {
                let (ledger, value) = (ledger(), term.token.to_string());
                let written = fence.put(&ledger, term, "balance", value).await;
                written.map(drop).map_err(|error| error.to_string())
            }
        }
    }

    /// What stands in the data, as this term reads it: another after each write of another term.
    pub async fn shown_to(&self, term: &Term) -> Result<String, String> {
        match self {
            Data::Etcd(fence) => {
                let reading = FencedTransaction::new().get("ledger");
                match fence.write(&ledger(), term, &reading).await {
                    Ok(Fenced::Written { read, .. }) => Ok(format!("{read:?}")),
                    other => Err(format!("{other:?}")),
                }
            }
            Data::Mongo(_, client) => {
                let balances = client.database("tenure").collection::<Document>("balances");
                let of_others = balances.count_documents(doc! { "by": { "$ne": term.token.signed() } });
                let of_others = of_others.await.map_err(|error| error.to_string())?;
                Ok(format!("{of_others} by other terms"))
            }
            Data::Nats(fence) => {
                let read = fence.get(&ledger(), term, "balance").await;
                read.map(|read| format!("{read:?}"))
                    .map_err(|error| error.to_string())
            }
        }
    }
}

async fn write_to_mongodb(fence: &MongoFence, client: &Client, term: &Term) -> Result<(), String> {
    let mut session = client.start_session().await.map_err(|error| error.to_string())?;
    let begun = session.start_transaction().await;
    begun.map_err(|error| error.to_string())?;
    let entered = fence.enter(&mut session, &ledger(), term).await;
    entered.map_err(|error| error.to_string())?;
    let balances = client.database("tenure").collection::<Document>("balances");
    let written = balances.insert_one(doc! { "by": term.token.signed() });
    let written = written.session(&mut session).await;
    written.map_err(|error| error.to_string())?;
    session
        .commit_transaction()
        .await
        .map_err(|error| error.to_string())
}
