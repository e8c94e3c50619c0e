//! For clients: the header of a term, which is not made any more once authority is over.

use crate::header::{FENCING_TOKEN, FencingHeader};
use std::fmt;
use tenure_core::{Authority, LeaseName, Term};

/// A header was asked for although authority is over: the work must stop.
///
/// Effect on authority: none, there is none left. Nothing was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AuthorityOver {
    /// The lease.
    pub lease: LeaseName,
}

impl fmt::Display for AuthorityOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "lease \"{}\": authority is over, so no request is made in its name; stop this work",
            self.lease
        )
    }
}

impl std::error::Error for AuthorityOver {}

impl FencingHeader {
    /// What a term presents, as long as it may be believed: also while it is doubtful or ending, to end what
    /// was begun.
    ///
    /// A header that was made before authority ended is still sent after: this spares a request, and it is
    /// the server's fence that refuses.
    ///
    /// # Errors
    /// [`AuthorityOver`] for [`Authority::None`].
    pub fn of(lease: &LeaseName, authority: Authority) -> Result<Self, AuthorityOver> {
        match authority.token() {
            Some(token) => Ok(Self(Term::new(lease.clone(), token))),
            None => Err(AuthorityOver { lease: lease.clone() }),
        }
    }
}

/// Sets the `Fencing-Token` header of a request that is being built.
///
/// ```
/// # use tenure_core::{Authority, FencingToken, LeaseName, Moment};
/// use tenure_http::FencedRequest;
/// # let lease = LeaseName::new("nightly-settlement")?;
/// # let authority = Authority::Held { token: FencingToken::new(7)?, until: Moment::from_millis(1) };
/// // With a `Leadership`: `.fencing_token(leadership.name(), leadership.authority())`.
/// let request = http::Request::put("/balance").fencing_token(&lease, authority)?.body(())?;
/// assert_eq!(request.headers()["fencing-token"], r#"7;lease="nightly-settlement""#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Clients with builders of their own (reqwest) take the value: `FencingHeader::of(…)?.value()`.
pub trait FencedRequest: Sized {
    /// Presents the term of `lease` that this authority is of.
    ///
    /// Send it with the first request that **reads** what will be changed too, not only with the writes: that
    /// request claims the resource, so that no older term can change what was read.
    ///
    /// # Errors
    /// [`AuthorityOver`]; the builder is gone with it, so that nothing is sent by mistake.
    fn fencing_token(self, lease: &LeaseName, authority: Authority) -> Result<Self, AuthorityOver>;
}

impl FencedRequest for http::request::Builder {
    fn fencing_token(mut self, lease: &LeaseName, authority: Authority) -> Result<Self, AuthorityOver> {
        let value = FencingHeader::of(lease, authority)?.value();
        // A second header would be refused, so this one takes the place of any other. A builder that has
        // failed has no headers: it keeps its error for `body`.
        if let Some(headers) = self.headers_mut() {
            headers.insert(FENCING_TOKEN, value);
        }
        Ok(self)
    }
}
