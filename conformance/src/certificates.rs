//! What every store is asked whose URL names PEM files for TLS.

use crate::asking::{request, seconds, take};
use std::fs::{copy, write};
use std::time::Duration;
use tenure_core::{Fault, LeaseStore, StoreError};
use tenure_testkit::{ScratchDir, SelfSigned, eventually_async};

/// How long a server may take to be there again.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server's certificate is trusted because the URL says so, and the client's is asked for. The server
/// shows `theirs`, and lets in whoever shows `ours`; its URL is the second scheme, of TLS, with this place on
/// `localhost`.
///
/// # Panics
/// If the store has the defect.
pub async fn both_sides_are_known_by_their_certificates<Store: LeaseStore>(
    [ours, theirs]: [&SelfSigned; 2],
    [plain, encrypted]: [&str; 2],
    place: &str,
    connect: impl AsyncFn(&str) -> Result<Store, StoreError>,
) {
    let known = format!("cert={}&key={}", ours.file, ours.key);
    let url = format!("{encrypted}://{place}?ca={}&{known}", theirs.file);
    match connect(&url).await {
        Ok(store) => drop(take(&store, &request("job", "a", seconds(60))).await),
        Err(error) => panic!("they know each other: {error}"),
    }
    let refused = async |scheme: &str, options: &str| {
        let connected = connect(&format!("{scheme}://{place}?{options}")).await;
        connected
            .err()
            .unwrap_or_else(|| panic!("connected with {options}"))
    };
    for (unknown, way_out) in [
        (format!("ca={}", theirs.file), ""),
        (known.clone(), "by ca="),
        (format!("ca={}&{known}", ours.file), ""),
    ] {
        let error = refused(encrypted, &unknown).await;
        assert!(error.message.contains(way_out), "{unknown}: {error}");
        assert!(is_away(&error), "{unknown}: {error}");
    }
    let by_address = place.replace("localhost", "127.0.0.1");
    let misnamed = connect(&format!("{encrypted}://{by_address}?ca={}&{known}", theirs.file)).await;
    match misnamed {
        Ok(_) => panic!("the certificate is another host's"),
        Err(error) => assert!(
            is_away(&error) && error.message.contains("name the host"),
            "{error}"
        ),
    }
    let folder = ScratchDir::new("certificates");
    let pipe = folder.pipe("ca.pem").display().to_string();
    for (scheme, useless, told) in [
        (encrypted, format!("ca={}", ours.key), format!("ca {}", ours.key)),
        (
            encrypted,
            "ca=/nowhere/ca.pem".to_owned(),
            "ca /nowhere/ca.pem".to_owned(),
        ),
        (encrypted, format!("ca={pipe}"), "no plain file".to_owned()),
        (
            encrypted,
            format!("cert={0}&key={0}", ours.file),
            format!("key {}", ours.file),
        ),
        (
            encrypted,
            format!("cert={}", ours.file),
            "belong together".to_owned(),
        ),
        (encrypted, format!("ca={0}&ca={0}", ours.file), "twice".to_owned()),
        (encrypted, "ca=".to_owned(), "empty".to_owned()),
        (
            plain,
            format!("ca={}", theirs.file),
            format!("write {encrypted}://"),
        ),
    ] {
        let error = refused(scheme, &useless).await;
        assert_eq!(error.fault, Fault::Invalid, "{useless}: {error}");
        assert!(error.message.contains(&told), "{useless}: {error}");
    }
}

/// A URL of TLS that leads to a port without it, and one without TLS that leads to one with it, are told with
/// the way out, as what may pass. `places` are on `localhost`: of a port without TLS, and of one with it,
/// where `theirs` is shown and no certificate is asked for.
///
/// # Panics
/// If the store has the defect.
pub async fn scheme_of_another_port_is_told<Store: LeaseStore>(
    theirs: &SelfSigned,
    [plain, encrypted]: [&str; 2],
    places: [&str; 2],
    connect: impl AsyncFn(&str) -> Result<Store, StoreError>,
) {
    let roots = format!("ca={}", theirs.file);
    let [without, with] = places;
    drop(
        connect(&format!("{plain}://{without}"))
            .await
            .expect("it is that port's"),
    );
    drop(
        connect(&format!("{encrypted}://{with}?{roots}"))
            .await
            .expect("it is that port's"),
    );
    for (url, way_out) in [
        (
            format!("{encrypted}://{without}?{roots}"),
            format!("say {plain}:"),
        ),
        (format!("{plain}://{with}"), format!("say {encrypted}:")),
    ] {
        let error = connect(&url).await.err().expect("it is another port's");
        assert!(error.message.contains(&way_out), "{url}: {error}");
        assert!(is_away(&error), "{url}: {error}");
    }
}

/// A server that shows the certificate of a root, as home-made ones often are, is told with the way out, as
/// what may pass. The URL names it as the root.
///
/// # Panics
/// If the store has the defect.
pub async fn certificate_of_a_root_is_told<Store: LeaseStore>(
    url: &str,
    connect: impl AsyncFn(&str) -> Result<Store, StoreError>,
) {
    let error = connect(url).await.err().expect("it is no server's certificate");
    assert!(error.message.contains("CA:FALSE"), "{url}: {error}");
    assert!(is_away(&error), "{url}: {error}");
}

/// The certificates are replaced in place before they expire, one file after the other, and the server is
/// started anew with its own. Its URL is that with which both sides are known to each other.
///
/// # Panics
/// If the store has the defect.
pub async fn replaced_certificates_are_used<Store: LeaseStore>(
    [ours, theirs]: [&SelfSigned; 2],
    url: &str,
    connect: impl AsyncFn(&str) -> Result<Store, StoreError>,
    mut restart: impl AsyncFnMut(),
) {
    let store = match connect(url).await {
        Ok(store) => store,
        Err(error) => panic!("they know each other: {error}"),
    };
    let asked = request("job", "a", seconds(60));
    take(&store, &asked).await;

    // The server's first, and then the client's: caught before its key is written. It passes, so it is
    // nothing that ends a campaign.
    theirs.renew();
    write(&ours.key, "").expect("a file is written");
    restart().await;
    let error = eventually_async(PATIENCE, "a connection without a key", || async {
        let told = store.get(&asked.name).await.err();
        told.filter(|error| error.message.contains(&ours.key))
    })
    .await;
    assert!(!error.fault.is_misconfiguration(), "{error}");
    copy(&SelfSigned::new("another").key, &ours.key).expect("a file is written");
    let Err(error) = store.get(&asked.name).await else {
        panic!("the key is another's")
    };
    assert!(!error.fault.is_misconfiguration(), "{error}");

    ours.renew();
    restart().await;
    let renewed = || async { store.get(&asked.name).await.is_ok() };
    eventually_async(PATIENCE, "a connection by the new ones", renewed).await;
}

fn is_away(error: &StoreError) -> bool {
    [Fault::Unreachable, Fault::TimedOut].contains(&error.fault)
}
