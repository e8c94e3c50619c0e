//! What every store is asked whose URL names PEM files for TLS.

use crate::asking::{request, seconds, take};
use tenure_core::{Fault, LeaseStore, StoreError};
use tenure_testkit::{ScratchDir, SelfSigned};

/// The server's certificate is trusted because the URL says so, and the client's is asked for. The server shows `theirs`, and lets
/// in whoever shows `ours`; its URL is the second scheme, of TLS, with this place.
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
    for unknown in [
        format!("ca={}", theirs.file),
        known.clone(),
        format!("ca={}&{known}", ours.file),
    ] {
        let error = refused(encrypted, &unknown).await;
        let is_away = [Fault::Unreachable, Fault::TimedOut].contains(&error.fault);
        assert!(is_away, "{unknown}: {error}");
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
