//! The `Fencing-Token` header: one lease, one token, one syntax.

use http::{HeaderMap, HeaderName, HeaderValue};
use sfv::visitor::{ItemVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, Integer, ItemSerializer, KeyRef, Parser, RefBareItem, StringRef, key_ref};
use std::convert::Infallible;
use std::fmt;
use tenure_core::{FencingToken, LeaseName, NameError, Term};

/// The header's name.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");

/// Longest value that is read, in bytes. The longest that is ever written has 796: a name of 255 bytes, each
/// of them in three characters.
const VALUE_BYTES_MAX: usize = 1024;

/// Most characters of a refused value that a message shows.
const SHOWN_CHARACTERS_MAX: usize = 40;

const LEASE: &KeyRef = key_ref("lease");

/// What a request presents: a term, by its lease and its token.
///
/// On the wire, an Item of RFC 9651 (Structured Field Values for HTTP) with one parameter:
///
/// ```text
/// Fencing-Token: 1700001065800;lease="nightly-settlement"
/// ```
///
/// - The token is an Integer: no token has more than the 15 digits that RFC 9651 leaves one.
/// - `lease` is a String, or a Display String where the name is not ASCII.
/// - It is read more strictly than RFC 9651 asks for: a second header line, a second `lease`, any other
///   parameter, and a token that is no Integer are refused. What is not understood must not be let in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FencingHeader(pub Term);

/// Why a `Fencing-Token` header is refused.
///
/// Effect on authority: none; the request was not looked at any further.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HeaderError {
    /// The header is there more than once: it could mean either.
    Repeated {
        /// How many there are.
        times: usize,
    },
    /// The value is longer than any that can be meant.
    TooLong {
        /// Bytes in the value.
        bytes: usize,
    },
    /// The value is no Item of RFC 9651.
    NoItem {
        /// The beginning of the value, escaped.
        shown: String,
    },
    /// The Item is no token: 0, negative, a fraction, no number, or not written as [`FencingHeader`] says.
    NoToken {
        /// The beginning of the value, escaped.
        shown: String,
    },
    /// No `lease` says whose token it is.
    NoLease,
    /// `lease` is there more than once, or is no text.
    LeaseUnclear,
    /// `lease` is a text that cannot be the name of a lease.
    Lease(NameError),
    /// A parameter that this version does not know, and so cannot obey.
    UnknownParameter {
        /// Its name, at most 40 characters.
        name: String,
    },
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated { times } => {
                write!(f, "header Fencing-Token is there {times} times; send it once")
            }
            Self::TooLong { bytes } => write!(
                f,
                "header Fencing-Token has {bytes} bytes; at most {VALUE_BYTES_MAX} are read; {EXAMPLE}"
            ),
            Self::NoItem { shown } => {
                write!(
                    f,
                    "header Fencing-Token: \"{shown}\" is no item of RFC 9651; {EXAMPLE}"
                )
            }
            Self::NoToken { shown } => write!(
                f,
                "header Fencing-Token: \"{shown}\" does not begin with a whole number from 1 to {}; {EXAMPLE}",
                FencingToken::MAX
            ),
            Self::NoLease => write!(f, "header Fencing-Token does not say of which lease; {EXAMPLE}"),
            Self::LeaseUnclear => write!(
                f,
                "header Fencing-Token has a lease that is no text, or more than one; {EXAMPLE}"
            ),
            Self::Lease(error) => write!(f, "header Fencing-Token: {error}"),
            Self::UnknownParameter { name } => write!(
                f,
                "header Fencing-Token has a parameter \"{name}\", which this server does not know; {EXAMPLE}"
            ),
        }
    }
}

impl std::error::Error for HeaderError {}

const EXAMPLE: &str = "send for example 1700001065800;lease=\"nightly-settlement\"";

impl FencingHeader {
    /// The one `Fencing-Token` of these headers; `None` if there is none.
    ///
    /// # Errors
    /// [`HeaderError`]: the header is there, and does not say one thing clearly.
    pub fn find(headers: &HeaderMap) -> Result<Option<Self>, HeaderError> {
        let mut values = headers.get_all(FENCING_TOKEN).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        match values.count() {
            0 => Self::read(value.as_bytes()).map(Some),
            more => Err(HeaderError::Repeated { times: more + 1 }),
        }
    }

    /// Reads the value of one header line.
    ///
    /// # Errors
    /// [`HeaderError`], never [`HeaderError::Repeated`].
    pub fn read(value: &[u8]) -> Result<Self, HeaderError> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(HeaderError::TooLong { bytes: value.len() });
        }
        let mut parts = Parts::default();
        if Parser::new(value).parse_item_with_visitor(&mut parts).is_err() {
            return Err(HeaderError::NoItem { shown: shown(value) });
        }
        let token = parts
            .token
            .ok_or_else(|| HeaderError::NoToken { shown: shown(value) })?;
        if let Some(name) = parts.unknown {
            return Err(HeaderError::UnknownParameter { name });
        }
        match parts.lease {
            Lease::Missing => Err(HeaderError::NoLease),
            Lease::Unclear => Err(HeaderError::LeaseUnclear),
            Lease::Named(name) => match LeaseName::new(name) {
                Ok(lease) => Ok(Self(Term::new(lease, token))),
                Err(error) => Err(HeaderError::Lease(error)),
            },
        }
    }

    /// The value of the header.
    #[must_use]
    pub fn value(&self) -> HeaderValue {
        let Self(Term { lease, token }) = self;
        let token = Integer::try_from(token.signed()).expect("no token has more than 15 digits");
        let lease = match StringRef::from_str(lease.as_str()) {
            Ok(ascii) => RefBareItem::String(ascii),
            Err(_) => RefBareItem::DisplayString(lease.as_str()),
        };
        let value = ItemSerializer::new()
            .bare_item(RefBareItem::Integer(token))
            .parameter(LEASE, lease)
            .finish();
        HeaderValue::try_from(value).expect("a structured field is printable ASCII")
    }
}

impl From<&FencingHeader> for HeaderValue {
    fn from(header: &FencingHeader) -> Self {
        header.value()
    }
}

/// What stood in the value, judged only once all of it has been read.
#[derive(Default)]
struct Parts {
    token: Option<FencingToken>,
    lease: Lease,
    unknown: Option<String>,
}

#[derive(Default)]
enum Lease {
    #[default]
    Missing,
    Named(String),
    Unclear,
}

impl<'de> ItemVisitor<'de> for &mut Parts {
    type Out = ();
    type Error = Infallible;
    fn bare_item(
        self,
        bare_item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = Self::Out>, Self::Error> {
        self.token = match bare_item {
            BareItemFromInput::Integer(integer) => FencingToken::from_signed(i64::from(integer)).ok(),
            BareItemFromInput::Decimal(_)
            | BareItemFromInput::String(_)
            | BareItemFromInput::ByteSequence(_)
            | BareItemFromInput::Boolean(_)
            | BareItemFromInput::Token(_)
            | BareItemFromInput::Date(_)
            | BareItemFromInput::DisplayString(_) => None,
        };
        Ok(self)
    }
}

impl<'de> ParameterVisitor<'de> for &mut Parts {
    type Out = ();
    type Error = Infallible;
    fn parameter(&mut self, key: &'de KeyRef, value: BareItemFromInput<'de>) -> Result<(), Self::Error> {
        if key != LEASE {
            let name = key.as_str().chars().take(SHOWN_CHARACTERS_MAX).collect();
            self.unknown.get_or_insert(name);
            return Ok(());
        }
        self.lease = match (&self.lease, value) {
            (Lease::Missing, BareItemFromInput::String(name)) => Lease::Named(name.as_str().to_owned()),
            (Lease::Missing, BareItemFromInput::DisplayString(name)) => Lease::Named(name.into_owned()),
            // RFC 9651 would have the last one win, silently.
            _ => Lease::Unclear,
        };
        Ok(())
    }
    fn finish(self) -> Result<Self::Out, Self::Error> {
        Ok(())
    }
}

fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    text.chars()
        .take(SHOWN_CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect()
}
