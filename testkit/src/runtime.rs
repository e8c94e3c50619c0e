//! The kit's own runtime.
//!
//! A MongoDB client dies with the runtime it was made on, and `#[tokio::test]` makes one runtime for each
//! test. A replica set shared by all tests of a process must therefore do its own talking elsewhere: here.
//! For the same reason tests make their own clients from the `uri()` of a fixture, and never share them.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::runtime::{Builder, Runtime};

/// The runtime, started on first use. It lives as long as the process.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("testkit")
            .enable_all()
            .build()
            .expect("the operating system grants two threads and an epoll handle")
    })
}

/// Runs a future on the kit's runtime; may be awaited on any executor.
pub(crate) async fn on_runtime<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match runtime().spawn(future).await {
        Ok(output) => output,
        Err(failure) => match failure.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(failure) => unreachable!("the kit's runtime never cancels a task: {failure}"),
        },
    }
}

/// Runs one of the kit's futures to its end on the calling thread, for code without an executor.
///
/// Works inside a runtime as well, but then blocks that runtime's thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
