//! What every store is asked whose URL names PEM files for TLS.

use crate::asking::{request, seconds, take};
use tenure_core::{Fault, LeaseStore, StoreError};
use tenure_testkit::SelfSigned;

/// The server's certificate is trusted because the URL says so, and the client's is asked for. The server shows `theirs`, and lets
/// in whoever shows `ours`; `url` is the server's with these options.
///
/// # Panics
/// If the store has the defect.
pub async fn both_sides_are_known_by_their_certificates<Store: LeaseStore>(
    [ours, theirs]: [&SelfSigned; 2],
    url: impl Fn(&str) -> String,
    connect: impl AsyncFn(&str) -> Result<Store, StoreError>,
) {
    let known = format!("cert={}&key={}", ours.file, ours.key);
    match connect(&url(&format!("ca={}&{known}", theirs.file))).await {
        Ok(store) => drop(take(&store, &request("job", "a", seconds(60))).await),
        Err(error) => panic!("they know each other: {error}"),
    }
    let refused = async |options: &str| match connect(&url(options)).await {
        Ok(_) => panic!("connected with {options}"),
        Err(error) => error,
    };
    for unknown in [
        format!("ca={}", theirs.file),
        known.clone(),
        format!("ca={}&{known}", ours.file),
    ] {
        let error = refused(&unknown).await;
        let is_away = [Fault::Unreachable, Fault::TimedOut].contains(&error.fault);
        assert!(is_away, "{unknown}: {error}");
    }
    for (useless, told) in [
        (format!("ca={}", ours.key), format!("ca {}", ours.key)),
        ("ca=/nowhere/ca.pem".to_owned(), "ca /nowhere/ca.pem".to_owned()),
        (
            format!("cert={0}&key={0}", ours.file),
            format!("key {}", ours.file),
        ),
        (format!("cert={}", ours.file), "belong together".to_owned()),
        (format!("ca={0}&ca={0}", ours.file), "twice".to_owned()),
        ("ca=".to_owned(), "empty".to_owned()),
    ] {
        let error = refused(&useless).await;
        assert_eq!(error.fault, Fault::Invalid, "{useless}: {error}");
        assert!(error.message.contains(&told), "{useless}: {error}");
    }
}
