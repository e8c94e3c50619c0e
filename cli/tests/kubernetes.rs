//! The pods in `deploy`, run as a kubelet runs them: there is none here to do it.

use crate::common::{SOON, Sandbox};
use std::time::Duration;
use tenure_testkit::{Process, eventually, free_port};

const MANIFEST: &str = include_str!("../../deploy/kubernetes.yaml");

/// What stands behind this key, wherever it stands: of several, in their order.
fn values(key: &str) -> Vec<&'static str> {
    let after = |line: &'static str| line.trim_start().strip_prefix(key)?.strip_prefix(": ");
    MANIFEST.lines().filter_map(after).collect()
}

/// The words of the container's command.
fn words() -> Vec<&'static str> {
    let list = values("command")[0]
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    let words = list.unwrap().split(", ");
    words.map(|word| word.trim_matches('"')).collect()
}

/// A pod whose work is this script.
fn start(sandbox: &Sandbox, pod: &str, script: &str) -> Process {
    let work = sandbox.script("controller", &format!("#!/bin/sh\n{script}\n"));
    let page = format!("127.0.0.1:{}", free_port());
    let arguments: Vec<String> = words()[1..]
        .iter()
        .map(|word| match *word {
            "0.0.0.0:9150" => page.clone(),
            "/usr/local/bin/controller" => work.display().to_string(),
            word => word.to_owned(),
        })
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = sandbox.command(&arguments);
    command.env("TENURE_CANDIDATE", pod);
    Process::spawn(command).unwrap()
}

/// A container that ends is started again after a pause that grows to five minutes, in both pods in turn.
#[test]
fn work_that_ends_ends_no_pod_and_is_run_again() {
    assert_eq!(words()[0], "tenure");
    let sandbox = Sandbox::new("pods");
    let script = format!("echo $TENURE_CANDIDATE >> {}; exit 1", sandbox.path("ran"));
    let pods = ["controller-1", "controller-2"].map(|pod| start(&sandbox, pod, &script));
    eventually(SOON, "three runs", || sandbox.read("ran").lines().count() >= 3);
    for pod in &pods {
        assert_eq!(pod.status(), None, "it has ended");
    }
}

/// A pod that is deleted has its work ended, and its lease given back; one whose work runs on after its term
/// is killed.
#[test]
fn a_pod_has_longer_to_end_than_its_work_and_no_time_where_only_its_end_helps() {
    let words = words();
    let grace = words.iter().position(|word| *word == "--grace").unwrap();
    let grace: u64 = words[grace + 1].strip_suffix('s').unwrap().parse().unwrap();
    let periods = values("terminationGracePeriodSeconds");
    let [of_the_pod, of_the_probe] = periods[..] else {
        panic!("{periods:?}")
    };
    assert!(of_the_pod.parse::<u64>().unwrap() > 2 * grace);
    assert_eq!(of_the_probe, "1");
    let sandbox = Sandbox::new("pod-deleted");
    let pod = start(&sandbox, "controller-1", "echo ran > ran; exec sleep 300");
    sandbox.line("ran");
    pod.terminate();
    pod.wait_for_exit(Duration::from_secs(of_the_pod.parse().unwrap()))
        .unwrap();
    assert_eq!(sandbox.lease("controller")["state"], "vacant");
}
