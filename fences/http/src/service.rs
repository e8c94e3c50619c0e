//! The service that the layer makes.

use crate::body::FencedBody;
use crate::completion::Completion;
use crate::gate::{Succession, Superseded};
use crate::layer::Rules;
use bytes::Bytes;
use http::{Request, Response};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A service behind a fence.
///
/// - An admitted request carries its [`Admission`](crate::Admission) in its extensions.
/// - The admission lasts until the inner service's response future is done, and longer as long as anybody
///   keeps a clone of it. It does **not** last while a response body streams: a client that does not read
///   would keep every later term waiting. A body that still changes state must own a clone.
/// - A response future that is dropped unfinished (a broken connection, a timeout around this service) goes
///   on in a task of its own. A timeout *inside* drops what it encloses, as ever: let that be pure reads, or
///   let the work own a clone.
/// - It takes every request at once, and waits for the inner service when the request was let in: what fills
///   a limit inside may be requests of an older term, which only the claim of a later one ends. So a limit
///   inside bounds what works, and not what waits.
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

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let inner = self.inner.clone();
        let rules = Arc::clone(&self.rules);
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            match rules.judge(&parts).await {
                Err(refusal) => Ok(refusal.response()),
                Ok(None) => {
                    let mut inner = inner;
                    poll_fn(|context| inner.poll_ready(context)).await?;
                    let request = Request::from_parts(parts, FencedBody::unfenced(body));
                    inner.call(request).await
                }
                Ok(Some(admission)) => {
                    // Dropped before the admission, as the work is. Until it is called nothing has begun that
                    // must go on.
                    let mut inner = inner;
                    if let Err(superseded) = ready(&mut inner, &admission.succession()).await? {
                        return Ok(rules.cut_short(&superseded).response());
                    }
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

/// Waits until the inner service takes a request, or a later term has claimed: that one waits for this
/// request to leave.
async fn ready<S, RequestBody>(
    inner: &mut S,
    succession: &Succession,
) -> Result<Result<(), Superseded>, S::Error>
where
    S: Service<Request<FencedBody<RequestBody>>>,
{
    let mut superseded = pin!(succession.comes());
    poll_fn(|context| match inner.poll_ready(context) {
        Poll::Ready(readiness) => Poll::Ready(readiness.map(Ok)),
        Poll::Pending => superseded.as_mut().poll(context).map(|news| Ok(Err(news))),
    })
    .await
}

impl<S> std::fmt::Debug for Fenced<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fenced").finish_non_exhaustive()
    }
}
