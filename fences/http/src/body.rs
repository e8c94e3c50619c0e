//! The body of an admitted request: it ends with an error once a later term has claimed.

use crate::gate::{Succession, Superseded};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

type News = Pin<Box<dyn Future<Output = Superseded> + Send>>;

pin_project! {
    /// The body of a request that has passed the layer.
    ///
    /// A client that is frozen while it sends would keep its handler waiting for the rest, and with it every
    /// later term: the very client that a fence is for. So once a later term has claimed, what has not been
    /// read yet is an error ([`Superseded`]), once, and the handler ends.
    pub struct FencedBody<B> {
        #[pin]
        inner: B,
        succession: Option<Succession>,
        // Made only when there is something to wait for.
        news: Option<News>,
        cut: Cut,
        // A handler that skips errors and reads on would spin for ever, and keep every later term out.
        failed: bool,
    }
}

/// What a handler was told instead of the rest of its request's body.
#[derive(Clone, Default)]
pub(crate) struct Cut(Arc<OnceLock<Superseded>>);

impl Cut {
    pub(crate) fn reason(&self) -> Option<&Superseded> {
        self.0.get()
    }

    fn by(&self, superseded: Superseded) -> Box<dyn Error + Send + Sync> {
        self.0.get_or_init(|| superseded).clone().into()
    }
}

impl<B> FencedBody<B> {
    pub(crate) fn unfenced(inner: B) -> Self {
        Self {
            inner,
            succession: None,
            news: None,
            cut: Cut::default(),
            failed: false,
        }
    }

    /// The body, and whether it was cut short.
    pub(crate) fn until(inner: B, succession: Succession) -> (Self, Cut) {
        let cut = Cut::default();
        let body = Self {
            inner,
            succession: Some(succession),
            news: None,
            cut: cut.clone(),
            failed: false,
        };
        (body, cut)
    }
}

impl<B> Body for FencedBody<B>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = B::Data;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        // What has come as a whole is left whole: there is nothing to wait for.
        if *this.failed || this.inner.is_end_stream() {
            return Poll::Ready(None);
        }
        if let Some(superseded) = this.succession.as_ref().and_then(Succession::now) {
            *this.failed = true;
            return Poll::Ready(Some(Err(this.cut.by(superseded))));
        }
        if let Poll::Ready(frame) = this.inner.poll_frame(context) {
            *this.failed = matches!(frame, Some(Err(_)));
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some(succession) = this.succession else {
            return Poll::Pending;
        };
        // The client may never send again: so be woken by the claim as well.
        let news = this.news.get_or_insert_with(|| {
            let succession = succession.clone();
            Box::pin(async move { succession.comes().await })
        });
        let superseded = ready!(news.as_mut().poll(context));
        *this.news = None;
        *this.failed = true;
        Poll::Ready(Some(Err(this.cut.by(superseded))))
    }

    fn is_end_stream(&self) -> bool {
        self.failed || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.failed {
            return SizeHint::with_exact(0);
        }
        self.inner.size_hint()
    }
}

impl<B> fmt::Debug for FencedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedBody").finish_non_exhaustive()
    }
}
