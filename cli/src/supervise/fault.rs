//! What becomes of a term when this process has a fault of its own while it supervises.

use crate::exit::Code;
use std::process::exit;

/// Kept while there is work: a panic that unwinds past it ends this process there and then, before the term
/// is dropped.
///
/// Dropping a term gives its lease back, and a panic waits for no work. A process that has ended leaves both
/// to the warden, which gives the lease back when nothing of the work is left.
pub(crate) struct EndedByFault;

impl Drop for EndedByFault {
    fn drop(&mut self) {
        if std::thread::panicking() {
            exit(i32::from(Code::Internal.number()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EndedByFault;
    use std::process::{Command, exit};

    /// Set in the process that has the fault.
    const IN_CHILD: &str = "TEST_OF_A_FAULT";

    /// A term, which must not be dropped.
    struct Held;

    impl Drop for Held {
        fn drop(&mut self) {
            exit(1);
        }
    }

    #[test]
    fn a_fault_ends_the_process_before_the_term_is_dropped() {
        if std::env::var_os(IN_CHILD).is_some() {
            let _held = Held;
            let _ended = EndedByFault;
            panic!("on purpose");
        }
        let test = "supervise::fault::tests::a_fault_ends_the_process_before_the_term_is_dropped";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(IN_CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(child.status.code(), Some(70), "{child:?}");
    }

    #[test]
    fn without_a_fault_it_ends_nothing() {
        drop(EndedByFault);
    }
}
