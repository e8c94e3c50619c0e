//! What the URLs of all stores have in common.

use tenure_core::{Fault, StoreError};

/// Takes the scheme off a URL of `system`; `None` where it has none.
///
/// # Errors
/// [`Fault::Invalid`], not applied: it is a list of URLs, as other programs take it. Read as one, it would name the first of its
/// hosts alone, and another place beside them than a list that begins with another.
pub fn split_scheme<'a>(system: &str, url: &'a str) -> Result<Option<(&'a str, &'a str)>, StoreError> {
    let address = url.split('?').next().unwrap_or_default();
    if address.matches("://").count() > 1 {
        return Err(StoreError::not_applied(
            Fault::Invalid,
            format!(
                "the {system} URL has :// twice: write the scheme once, and the hosts after it, separated by commas \
                 (scheme://user:password@host:port,host:port/…); percent-encode : and / in user and password"
            ),
        ));
    }
    Ok(url.split_once("://"))
}
