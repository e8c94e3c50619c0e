use crate::Target;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// What a target found in an input: the panic's words and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The panic's words.
    pub message: String,
    /// File and line.
    pub place: String,
}

thread_local! {
    /// Where the last caught panic of this thread came from; `None` outside of an execution.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Judges one input and catches what it finds.
///
/// A panic of the product itself is a finding like any other. What ends the process without a panic (an
/// abort, a stack that overflows) is not caught here: libFuzzer keeps the input then.
#[must_use]
pub fn execute(target: &Target, input: &[u8]) -> Option<Finding> {
    quieten();
    PLACE.set(Some(String::new()));
    let caught = panic::catch_unwind(AssertUnwindSafe(|| (target.judge)(input)));
    let place = PLACE.take().unwrap_or_default();
    caught.err().map(|payload| Finding {
        message: words(payload.as_ref()),
        place,
    })
}

/// Lets panics within an execution note their place instead of printing; all others print as ever.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            let noted = PLACE.with_borrow_mut(|place| {
                place.as_mut().map(|place| {
                    *place = information
                        .location()
                        .map(ToString::to_string)
                        .unwrap_or_default()
                })
            });
            if noted.is_none() {
                before(information);
            }
        }));
    });
}

fn words(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else {
        "a panic without words".to_owned()
    }
}
