//! Terms are counted on the clock that goes on while the machine sleeps. No machine sleeps here: a namespace
//! puts that clock ahead of the one that stands still then, as a sleep would have.
use rustix::time::{ClockId, clock_gettime};
use std::process::Command;
use std::time::Duration;
use tenure::{clock_now, sleep_until};
use tenure_testkit::on_a_clock_that_is_ahead;

const ROLE: &str = "TENURE_TEST_SUSPENDED";

/// For how long the machine has slept, in seconds.
const SLEPT: u64 = 1_000;

/// What the tests below start again, which does nothing by itself.
#[tokio::test]
async fn as_a_child() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let awake = clock_gettime(ClockId::Monotonic);
    let awake = Duration::new(awake.tv_sec.unsigned_abs(), 0);
    let counted = Duration::from_nanos(clock_now().as_nanos());
    assert!(
        counted >= awake + Duration::from_secs(SLEPT),
        "{counted:?} counted, {awake:?} awake"
    );
    // A timer of the other clock would fire when the machine has been awake for so long.
    let at = clock_now().after(Duration::from_millis(100));
    let fires = tokio::time::timeout(Duration::from_secs(60), sleep_until(at)).await;
    assert!(fires.is_ok() && clock_now() >= at, "{fires:?}");
    println!("counts on");
}

#[test]
fn terms_are_counted_on_a_clock_that_goes_on_while_the_machine_sleeps() {
    let mut child: Command = on_a_clock_that_is_ahead(SLEPT);
    child.arg(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "suspend::as_a_child",
        "--nocapture",
        "--test-threads=1",
    ]);
    let said = child.env(ROLE, "1").output().unwrap();
    let told = String::from_utf8_lossy(&said.stdout);
    assert!(
        said.status.success() && told.contains("counts on"),
        "this test needs user namespaces: {told}{}",
        String::from_utf8_lossy(&said.stderr)
    );
}
