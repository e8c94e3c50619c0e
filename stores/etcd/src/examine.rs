//! Examining a cluster for an operator.

use crate::site::{Site, transact};
use crate::wire::cluster::{AlarmRequest, AlarmResponse, CORRUPT, NOSPACE, StatusRequest, StatusResponse};
use crate::wire::kv::{RequestOp, TxnRequest};
use crate::wire::path;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use tenure_core::{Fault, Finding, StoreError, Verdict};
use tenure_remote::{Deed, line};

/// Before these, a leader that stalls ends leases that its successor extends (etcd-io/etcd#15247).
const MENDED: [(u64, u64, u64); 2] = [(3, 4, 31), (3, 5, 13)];

/// All findings. One that could not be made is a finding, too.
pub(crate) async fn findings(site: &Site) -> Result<Vec<Finding>, StoreError> {
    let status: Result<StatusResponse, _> = site.requests.unary(path::STATUS, &StatusRequest {}).await;
    let status = status.map_err(|failure| failure.error(Deed::Read, "the examination", &site.place))?;
    let mut findings = vec![version(&status), leader(&status)];
    findings.extend(members(site).await);
    findings.push(privileges(site).await);
    findings.push(space(site, &status).await);
    findings.push(finding(
        "durability",
        Verdict::Good,
        "a write is on the disks of a majority before it is confirmed (unless members run with --unsafe-no-fsync, which they \
         do not tell)",
    ));
    findings.push(finding(
        "clock",
        Verdict::Good,
        "the leader times sessions by its monotonic clock; after a change of leader each lasts its whole ttl again",
    ));
    findings.push(finding(
        "shortest ttl",
        Verdict::Good,
        &format!("{}, which follows from --election-timeout", site.ttl_min),
    ));
    Ok(findings)
}

fn finding(subject: &str, verdict: Verdict, detail: &str) -> Finding {
    Finding {
        subject: subject.to_owned(),
        verdict,
        detail: detail.to_owned(),
        repair: None,
    }
}

fn repaired_by(finding: Finding, repair: &str) -> Finding {
    let repair = Some(repair.to_owned());
    Finding { repair, ..finding }
}

fn version(status: &StatusResponse) -> Finding {
    let told = line(&status.version);
    let mut parts = told
        .split(['.', '-', '+'])
        .map(|part| part.parse::<u64>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    let version = (next(), next(), next());
    if version < (3, 4, 0) {
        let bad = finding("version", Verdict::Bad, &format!("etcd {told} is older than 3.4"));
        return repaired_by(bad, "upgrade the cluster");
    }
    let mended = |(major, minor, patch): &(u64, u64, u64)| {
        (version.0, version.1) != (*major, *minor) || version.2 >= *patch
    };
    if MENDED.iter().all(mended) {
        return finding("version", Verdict::Good, &format!("etcd {told}"));
    }
    let weak = finding(
        "version",
        Verdict::Warning,
        &format!(
            "etcd {told}: a leader that stalls may end leases early that its successor has extended (etcd-io/etcd#15247); the \
             fence protects"
        ),
    );
    repaired_by(weak, "upgrade to 3.4.31, 3.5.13 or later")
}

fn leader(status: &StatusResponse) -> Finding {
    if status.is_learner {
        let bad = finding(
            "leader",
            Verdict::Bad,
            "the member is a learner, which answers nothing",
        );
        return repaired_by(bad, "name voting members in the URL");
    }
    match status.leader {
        0 => finding(
            "leader",
            Verdict::Bad,
            "the member knows no leader: nobody can be elected",
        ),
        leader => finding("leader", Verdict::Good, &format!("member {leader:016x} leads")),
    }
}

async fn members(site: &Site) -> Vec<Finding> {
    let mut silent = Vec::new();
    let count = site.members.count();
    for (host, answer) in site.members.ask_each().await {
        if let Err(why) = answer {
            silent.push(format!("{host}: {why}"));
        }
    }
    let detail = match silent.as_slice() {
        [] if count == 1 => {
            let one = finding(
                "members",
                Verdict::Warning,
                "the URL names one member: while it is down nobody is elected, even if the others live",
            );
            return vec![repaired_by(
                one,
                "name every member of the cluster, and run three",
            )];
        }
        [] => return vec![finding("members", Verdict::Good, &format!("all {count} answer"))],
        silent => silent.join("; "),
    };
    vec![finding("members", Verdict::Warning, &detail)]
}

/// Writes a scratch key, and removes it.
async fn privileges(site: &Site) -> Finding {
    let key = site.keys.scratch(RandomState::new().build_hasher().finish());
    let write = TxnRequest {
        success: vec![RequestOp::put(key.clone(), Vec::new(), 0)],
        ..TxnRequest::default()
    };
    let remove = TxnRequest {
        success: vec![RequestOp::delete(key)],
        ..TxnRequest::default()
    };
    let done = match transact(&site.requests, &write).await {
        Ok(_) => transact(&site.requests, &remove).await,
        Err(failure) => Err(failure),
    };
    match done {
        Ok(_) => finding("privileges", Verdict::Good, "may read and write under the prefix"),
        Err(failure) => {
            let error = failure.error(Deed::Write, "a scratch key", &site.place);
            let bad = finding("privileges", Verdict::Bad, &error.message);
            match error.fault {
                Fault::Forbidden => repaired_by(
                    bad,
                    "etcdctl role grant-permission ROLE readwrite PREFIX/ --prefix",
                ),
                _ => bad,
            }
        }
    }
}

async fn space(site: &Site, status: &StatusResponse) -> Finding {
    let alarms: Result<AlarmResponse, _> = site.requests.unary(path::ALARM, &AlarmRequest {}).await;
    let alarms = match alarms {
        Ok(alarms) => alarms.alarms,
        Err(failure) => {
            let error = failure.error(Deed::Read, "the alarms", &site.place);
            return finding("space", Verdict::Warning, &error.message);
        }
    };
    let rings = |kind| alarms.iter().any(|member| member.alarm == kind);
    let megabytes = status.db_size / 1_000_000;
    if rings(NOSPACE) {
        let full = finding(
            "space",
            Verdict::Bad,
            &format!(
                "out of space (NOSPACE) with {megabytes} MB: whoever holds a lease keeps it, nobody can take one"
            ),
        );
        return repaired_by(full, "etcdctl compact, etcdctl defrag, then etcdctl alarm disarm");
    }
    if rings(CORRUPT) {
        return finding(
            "space",
            Verdict::Bad,
            "a member raises the alarm CORRUPT: its data differ from the others'",
        );
    }
    finding(
        "space",
        Verdict::Good,
        &format!("{megabytes} MB are used, and no alarm rings"),
    )
}
