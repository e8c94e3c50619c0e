//! Options of a URL that other drivers take and ours does not: it must be told which.
//!
//! The driver's own words quote what it has stumbled over, and in a URL that is cut off or not escaped that
//! is the password. A name from MongoDB's own list is none.

use crate::url::{StoreUrl, invalid};
use mongodb::options::ClientOptions;
use tenure_core::StoreError;

/// What MongoDB's manual lists of such options, as it writes them, but for those of `mongodb+srv:` alone.
const LISTED: [&str; 46] = [
    "appName",
    "authMechanism",
    "authMechanismProperties",
    "authSource",
    "compressors",
    "connectTimeoutMS",
    "directConnection",
    "gssapiServiceName",
    "heartbeatFrequencyMS",
    "journal",
    "loadBalanced",
    "localThresholdMS",
    "maxConnecting",
    "maxIdleTimeMS",
    "maxPoolSize",
    "maxStalenessSeconds",
    "minPoolSize",
    "proxyHost",
    "proxyPassword",
    "proxyPort",
    "proxyUsername",
    "readConcernLevel",
    "readPreference",
    "readPreferenceTags",
    "replicaSet",
    "retryReads",
    "retryWrites",
    "serverMonitoringMode",
    "serverSelectionTimeoutMS",
    "serverSelectionTryOnce",
    "socketTimeoutMS",
    "ssl",
    "timeoutMS",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsAllowInvalidHostnames",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "tlsCertificateKeyFilePassword",
    "tlsDisableCertificateRevocationCheck",
    "tlsDisableOCSPEndpointCheck",
    "tlsInsecure",
    "uuidRepresentation",
    "w",
    "waitQueueTimeoutMS",
    "wtimeoutMS",
];

/// What to say of a URL that the driver does not read: which of its options it does not take by themselves,
/// or else together; without any, what every URL needs.
pub(crate) async fn named(url: &str) -> StoreError {
    let Some((address, query)) = url.rsplit_once('?') else {
        return StoreUrl::unreadable();
    };
    // Nothing is asked of the DNS.
    let address = address.replacen("mongodb+srv:", "mongodb:", 1);
    if !is_read(&address).await {
        return StoreUrl::unreadable();
    }
    let options: Vec<&str> = query.split('&').collect();
    let refused = refused(&address, &options).await;
    if !refused.is_empty() {
        return invalid(&format!(
            "the MongoDB URL has options that are not taken, or not with this value: {}; mend or remove them (what is built in: the README of \
             tenure-mongodb)",
            refused.join(", ")
        ));
    }
    let clashing = clashing(&address, &options).await;
    if clashing.is_empty() {
        return StoreUrl::unreadable();
    }
    invalid(&format!(
        "the MongoDB URL has options that do not go together: {}; remove one of them, or give it another value",
        clashing.join(", ")
    ))
}

/// Those that are not read where they are the only one.
async fn refused(address: &str, options: &[&str]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for option in options {
        if let Some(name) = listed(option)
            && !names.contains(&name)
            && !is_read(&format!("{address}?{option}")).await
        {
            names.push(name);
        }
    }
    names
}

/// Those without which the others are read.
async fn clashing(address: &str, options: &[&str]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (place, option) in options.iter().enumerate() {
        let others = [&options[..place], &options[place + 1..]].concat();
        if let Some(name) = listed(option)
            && !names.contains(&name)
            && is_read(&format!("{address}?{}", others.join("&"))).await
        {
            names.push(name);
        }
    }
    names
}

/// The option's name as the manual has it.
fn listed(option: &str) -> Option<&'static str> {
    let key = option.split_once('=').map_or(option, |(key, _)| key);
    LISTED
        .iter()
        .find(|listed| listed.eq_ignore_ascii_case(key))
        .copied()
}

async fn is_read(url: &str) -> bool {
    ClientOptions::parse(url).await.is_ok()
}
