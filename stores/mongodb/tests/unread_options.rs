//! URLs with options that the driver does not take: which, and nothing else of the URL.

use crate::common::{Scratch, request, seconds, take};
use mongodb::bson::{Document, doc};
use tenure_core::Fault;
use tenure_mongodb::MongoStore;
use tenure_testkit::ReplicaSet;

const SECRET: &str = "hunter2-s3cret";

#[tokio::test]
async fn options_that_the_driver_does_not_take_are_told_by_their_names() {
    for (options, named) in [
        ("compressors=zstd", &["compressors"][..]),
        ("compressors=snappy,zlib&retryWrites=true", &["compressors"]),
        ("authMechanism=MONGODB-AWS", &["authMechanism"]),
        ("SocketTimeoutMS=50", &["socketTimeoutMS"]),
        (
            "timeoutMS=1000&uuidRepresentation=standard",
            &["timeoutMS", "uuidRepresentation"],
        ),
        (
            "tls=true&tlsAllowInvalidHostnames=true",
            &["tlsAllowInvalidHostnames"],
        ),
        ("heartbeatFrequencyMS=100", &["heartbeatFrequencyMS"]),
        ("maxPoolSize=0", &["maxPoolSize"]),
        ("proxyHost=hunter2-s3cret", &["proxyHost"]),
    ] {
        for scheme in ["mongodb", "mongodb+srv"] {
            let url = format!("{scheme}://me:{SECRET}@host.invalid/db?{options}");
            let error = MongoStore::connect(&url).await.expect_err(options);
            let message = &error.message;
            // Of a name that only the DNS knows, some are found out later.
            if scheme == "mongodb+srv" && error.fault == Fault::Unreachable {
                continue;
            }
            assert_eq!(error.fault, Fault::Invalid, "{error}");
            for name in named {
                assert!(message.contains(name), "{name} is not in: {message}");
            }
            for unnamed in [SECRET, "retryWrites", " tls,", "zstd", "percent-encode"] {
                assert!(!message.contains(unnamed), "{unnamed} is in: {message}");
            }
        }
    }
}

/// Where the rest of the URL is to blame, none is.
#[tokio::test]
async fn options_that_are_not_to_blame_are_not_named() {
    for url in [
        format!("mongodb://me:{SECRET}?compressors=zstd"),
        format!("mongodb://me:{SECRET}@host.invalid/db?{SECRET}=1"),
        format!("mongodb://me:{SECRET}/x@host.invalid/db?compressors={SECRET}"),
    ] {
        let error = MongoStore::connect(&url).await.expect_err("refused");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains("percent-encode"), "{error}");
        for unnamed in [SECRET, "compressors", "tls"] {
            assert!(!error.message.contains(unnamed), "{unnamed} is in: {error}");
        }
    }
}

/// As those of the driver are.
#[tokio::test]
async fn options_of_the_store_are_taken_in_any_case() {
    let scratch = Scratch::new(ReplicaSet::shared().await.uri());
    let store = MongoStore::connect(&scratch.url("COLLECTION=others&purgeafter=30d")).await;
    take(&store.expect("a store"), &request("job", "holder", seconds(60))).await;
    let client = scratch.client().await;
    let others = client
        .database(&scratch.database)
        .collection::<Document>("others");
    let record = others.find_one(doc! { "_id": "job", "purgeAt": { "$exists": true } });
    assert!(record.await.expect("a read").is_some());
    let twice = scratch.url("collection=a&Collection=b");
    let error = MongoStore::connect(&twice).await.expect_err("twice");
    assert_eq!(error.fault, Fault::Invalid, "{error}");
}

/// Each of them is read where it is the only one.
#[tokio::test]
async fn options_that_do_not_go_together_are_told_by_their_names() {
    for (options, named) in [
        (
            "authMechanism=MONGODB-X509&authSource=hunter2-s3cret&tls=true",
            "authMechanism, authSource;",
        ),
        (
            "appName=x&tls=false&tlsCAFile=/hunter2-s3cret.pem",
            "tls, tlsCAFile;",
        ),
    ] {
        let url = format!("mongodb://host.invalid/db?{options}");
        let error = MongoStore::connect(&url).await.expect_err(options);
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        let told = format!("do not go together: {named}");
        assert!(error.message.contains(&told), "{error}");
        assert!(!error.message.contains(SECRET), "{error}");
    }
}
