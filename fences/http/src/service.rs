//! The service that the layer makes.

use crate::body::FencedBody;
use crate::completion::Completion;
use crate::layer::Rules;
use bytes::Bytes;
use http::{Request, Response};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A service behind a fence.
///
/// - An admitted request carries its [`Admission`](crate::Admission) in its extensions.
/// - The admission lasts until the inner service's response future is done, and longer as long as anybody
///   keeps a clone of it. It does **not** last while a response body streams: a client that does not read
///   would keep every later term waiting. A body that still changes state must own a clone.
/// - A response future that is dropped unfinished (a broken connection, a timeout around this service) goes on
///   in a task of its own. A timeout *inside* drops what it encloses, as ever: let that be pure reads, or let
///   the work own a clone.
///
/// Must be polled in a tokio runtime with its timer.
#[derive(Clone)]
pub struct Fenced<S> {
    inner: S,
    rules: Arc<Rules>,
}

impl<S> Fenced<S> {
    pub(crate) fn new(inner: S, rules: Arc<Rules>) -> Self {
        Self { inner, rules }
    }
}

impl<S, RequestBody, ResponseBody> Service<Request<RequestBody>> for Fenced<S>
where
    S: Service<Request<FencedBody<RequestBody>>, Response = Response<ResponseBody>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    RequestBody: Send + 'static,
    ResponseBody: From<Bytes>,
{
    type Response = Response<ResponseBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        // The one that was found ready is the one to call; the clone becomes ready anew.
        let later = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, later);
        let rules = Arc::clone(&self.rules);
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            match rules.judge(&parts).await {
                Err(refusal) => Ok(refusal.response()),
                Ok(None) => {
                    let request = Request::from_parts(parts, FencedBody::unfenced(body));
                    inner.call(request).await
                }
                Ok(Some(admission)) => {
                    let (body, cut) = FencedBody::until(body, admission.succession());
                    // An outer layer's would be lost to what goes on after the response.
                    let admission = admission.within(parts.extensions.remove());
                    parts.extensions.insert(admission.clone());
                    let work = inner.call(Request::from_parts(parts, body));
                    let response = Completion::new(work, admission).await?;
                    let status = response.status();
                    match cut.reason() {
                        // The handler can only say that its body broke off; the client must learn why.
                        Some(superseded) if status.is_client_error() || status.is_server_error() => {
                            Ok(rules.cut_short(superseded).response())
                        }
                        Some(_) | None => Ok(response),
                    }
                }
            }
        })
    }
}

impl<S> std::fmt::Debug for Fenced<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fenced").finish_non_exhaustive()
    }
}
