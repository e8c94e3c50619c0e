//! Files of credentials.

use crate::common::{Scratch, giving_back, request, seconds, take};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tenure_core::{Fault, LeaseStore, Leases};
use tenure_nats::{NatsFence, NatsStore};
use tenure_testkit::{NatsOptions, NatsServer, ScratchDir, eventually_async};

/// How long a server may take to be there again.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an issuer says of somebody, signed.
fn jwt(issuer: &KeyPair, subject: &KeyPair, expires: Option<u64>, says: &Value) -> String {
    let mut claims = json!({
        "jti": "TEST", "iat": 1, "iss": issuer.public_key(), "sub": subject.public_key(), "name": "test", "nats": says,
    });
    if let Some(expires) = expires {
        claims["exp"] = expires.into();
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!(
        "{}.{}",
        part(&json!({ "typ": "JWT", "alg": "ed25519-nkey" })),
        part(&claims)
    );
    let signature = issuer.sign(signed.as_bytes()).expect("a signature");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Accounts of an operator, as a service of NATS has them.
struct Operator {
    account: KeyPair,
    settings: String,
}

impl Operator {
    fn new() -> Self {
        let (operator, system, account) = (
            KeyPair::new_operator(),
            KeyPair::new_account(),
            KeyPair::new_account(),
        );
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        });
        let mut with_streams = limits.clone();
        for limit in ["mem_storage", "disk_storage", "streams", "consumer"] {
            with_streams[limit] = json!(-1);
        }
        let of_account = |account: &KeyPair, limits: &Value| {
            let says = json!({ "type": "account", "version": 2, "limits": limits });
            format!(
                "{}: \"{}\"\n",
                account.public_key(),
                jwt(&operator, account, None, &says)
            )
        };
        let settings = format!(
            "operator: \"{}\"\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n{}{}}}\n",
            jwt(
                &operator,
                &operator,
                None,
                &json!({ "type": "operator", "version": 2 })
            ),
            system.public_key(),
            of_account(&system, &limits),
            of_account(&account, &with_streams),
        );
        Self { account, settings }
    }

    /// Credentials of a user of this account, as `nsc` writes them.
    fn credentials(&self, account: &KeyPair, expires: Option<u64>) -> String {
        let user = KeyPair::new_user();
        let says = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {},
        });
        let seed = user.seed().expect("a seed");
        format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n\
             ------END USER NKEY SEED------\n",
            jwt(account, &user, expires, &says)
        )
    }
}

fn url(server: &NatsServer, file: &Path) -> String {
    format!("{}/app?creds={}", server.url(), file.display())
}

#[tokio::test]
async fn user_of_an_account_is_let_in_by_a_file_of_credentials_which_is_read_anew_for_each_connection() {
    let operator = Operator::new();
    let mut server = NatsServer::start(NatsOptions::default().with(&operator.settings))
        .await
        .expect("a server");
    let folder = ScratchDir::new("credentials");
    let file = folder.join("user.creds");
    fs::write(&file, operator.credentials(&operator.account, None)).expect("written");
    let store = NatsStore::connect(&url(&server, &file)).await.expect("let in");
    let asked = request("job", "a", seconds(60));
    let token = take(&store, &asked).await.token;
    let fence = NatsFence::connect(&url(&server, &file), Leases::Here).await;
    assert!(fence.is_ok(), "{:?}", fence.err());

    fs::write(&file, "nothing of use").expect("written");
    server.kill();
    server.restart().await.expect("it comes back");
    let error = eventually_async(PATIENCE, "a connection that is not made", || async {
        let found = store.get(&asked.name).await;
        found
            .err()
            .filter(|error| error.message.contains("holds no credentials"))
    })
    .await;
    // It is being replaced: nothing that must end a campaign.
    assert_eq!(error.fault, Fault::Unreachable, "{error}");
    let told = format!("{} holds no credentials", file.display());
    assert!(error.message.contains(&told), "{error}");
    assert!(!error.message.contains("nothing of use"), "{error}");
    fs::write(&file, operator.credentials(&operator.account, None)).expect("written");
    let released = store.release(&[giving_back(&asked, token)]).await.remove(0);
    assert!(released.is_ok(), "{released:?}");
}

#[tokio::test]
async fn credentials_that_are_refused_are_told_by_their_file_and_never_shown() {
    let operator = Operator::new();
    let server = NatsServer::start(NatsOptions::default().with(&operator.settings))
        .await
        .expect("a server");
    let folder = ScratchDir::new("credentials");
    let file = folder.join("user.creds");
    let stranger = KeyPair::new_account();
    for refused in [
        operator.credentials(&operator.account, Some(2)),
        operator.credentials(&stranger, None),
    ] {
        fs::write(&file, &refused).expect("written");
        let error = NatsStore::connect(&url(&server, &file))
            .await
            .expect_err("refused");
        assert_eq!(error.fault, Fault::Unauthenticated, "{error}");
        let told = format!("check the credentials in {}", file.display());
        assert!(error.message.contains(&told), "{error}");
        let shows = |secret: &str| secret.len() > 40 && error.message.contains(secret);
        assert!(!refused.lines().any(shows), "{error}");
    }
    for missing in [
        folder.join("none.creds"),
        folder.path().to_owned(),
        folder.pipe("pipe.creds"),
    ] {
        let error = NatsStore::connect(&url(&server, &missing))
            .await
            .expect_err("no file");
        assert_eq!(error.fault, Fault::Invalid, "{error}");
        assert!(error.message.contains(&missing.display().to_string()), "{error}");
    }
    let nobody = NatsStore::connect(&server.url()).await.expect_err("nobody");
    assert_eq!(nobody.fault, Fault::Unauthenticated, "{nobody}");
    assert!(nobody.message.contains("creds"), "{nobody}");
}

/// Where the servers know the user's key themselves.
#[tokio::test]
async fn user_is_let_in_by_the_seed_of_a_key_alone() {
    let user = KeyPair::new_user();
    let settings = format!(
        "authorization {{ users: [ {{ nkey: {} }} ] }}\n",
        user.public_key()
    );
    let server = NatsServer::start(NatsOptions::default().with(&settings))
        .await
        .expect("a server");
    let folder = ScratchDir::new("credentials");
    let file = folder.join("user.nk");
    fs::write(&file, format!("{}\n", user.seed().expect("a seed"))).expect("written");
    let store = NatsStore::connect(&url(&server, &file)).await.expect("let in");
    take(&store, &request("job", "a", seconds(60))).await;
}

/// A server that asks for nobody's credentials lets in whoever has some.
#[tokio::test]
async fn credentials_are_in_nobodys_way_where_none_are_asked_for() {
    let operator = Operator::new();
    let folder = ScratchDir::new("credentials");
    let file = folder.join("user.creds");
    fs::write(&file, operator.credentials(&operator.account, None)).expect("written");
    let scratch = Scratch::new().await;
    let url = format!("{}/{}?creds={}", scratch.url, scratch.bucket, file.display());
    let store = NatsStore::connect(&url).await.expect("let in");
    take(&store, &request("job", "a", seconds(60))).await;
}
