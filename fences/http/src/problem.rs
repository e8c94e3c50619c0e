//! A refusal as a response: a problem of RFC 9457, as JSON.

use crate::gate::Superseded;
use crate::refusal::Refusal;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

/// After how many seconds a request that met a 503 may be sent again.
const RETRY_AFTER_SECONDS: &str = "1";

impl Refusal {
    /// The status of its response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Missing { .. } => StatusCode::PRECONDITION_REQUIRED,
            Self::Malformed(_) | Self::NoResource(_) => StatusCode::BAD_REQUEST,
            Self::Foreign { .. } | Self::Future { .. } => StatusCode::FORBIDDEN,
            Self::Stale { .. } | Self::Superseded(_) => StatusCode::CONFLICT,
            Self::OlderInside { .. } | Self::Crowded { .. } | Self::Unavailable { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// The `type` of its problem: a client may rely on it, as on the status.
    #[must_use]
    pub fn problem_type(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "urn:tenure:problem:token-required",
            Self::Malformed(_) => "urn:tenure:problem:token-malformed",
            Self::NoResource(_) => "urn:tenure:problem:no-resource",
            Self::Foreign { .. } => "urn:tenure:problem:token-of-another-lease",
            Self::Future { .. } => "urn:tenure:problem:token-from-the-future",
            Self::Stale { .. } => "urn:tenure:problem:token-stale",
            Self::Superseded(_) => "urn:tenure:problem:token-superseded",
            Self::OlderInside { .. } => "urn:tenure:problem:older-terms-inside",
            Self::Crowded { .. } => "urn:tenure:problem:fence-crowded",
            Self::Unavailable { .. } => "urn:tenure:problem:fence-unavailable",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "A fencing token is required",
            Self::Malformed(_) => "The fencing token cannot be read",
            Self::NoResource(_) => "The request names no resource",
            Self::Foreign { .. } => "The fencing token is of another lease",
            Self::Future { .. } => "The fencing token is from the future",
            Self::Stale { .. } => "The fencing token is stale",
            Self::Superseded(_) => "The fencing token has become stale",
            Self::OlderInside { .. } => "Requests of older terms have not ended",
            Self::Crowded { .. } => "Too many requests at the fence",
            Self::Unavailable { .. } => "The fence cannot be asked",
        }
    }

    /// The members of the problem. A token is a JSON number: read it into 64 bits, not into a double.
    fn problem(&self) -> Value {
        let mut problem = json!({
            "type": self.problem_type(),
            "title": self.title(),
            "status": self.status().as_u16(),
            "detail": self.to_string(),
        });
        match self {
            Self::Stale {
                resource,
                token,
                mark,
            }
            | Self::Superseded(Superseded {
                resource,
                token,
                mark,
            }) => {
                problem["resource"] = json!(resource.as_str());
                problem["token"] = json!(token.number());
                problem["mark"] = json!(mark.number());
            }
            Self::Foreign { resource, token, .. }
            | Self::Future { resource, token, .. }
            | Self::OlderInside { resource, token, .. } => {
                problem["resource"] = json!(resource.as_str());
                problem["token"] = json!(token.number());
            }
            Self::Missing { resource, .. }
            | Self::Crowded { resource }
            | Self::Unavailable { resource, .. } => {
                problem["resource"] = json!(resource.as_str());
            }
            Self::Malformed(_) | Self::NoResource(_) => {}
        }
        problem
    }

    /// The whole response.
    #[must_use]
    pub fn response<B: From<Bytes>>(&self) -> Response<B> {
        let body = Bytes::from(self.problem().to_string());
        let mut response = Response::new(B::from(body));
        let status = self.status();
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        // It is about one token, which is no part of any cache's key.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        response
    }
}
