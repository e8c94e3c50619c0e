//! Examining a cluster for an operator.

use crate::roll::{self, Told};
use crate::site::{Site, transact};
use crate::version::{self, Version, Worth};
use crate::wire::cluster::{AlarmRequest, AlarmResponse, CORRUPT, NOSPACE, StatusRequest, StatusResponse};
use crate::wire::kv::{RequestOp, TxnRequest};
use crate::wire::path;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use tenure_core::{Durability, Fault, Finding, StoreError, Verdict};
use tenure_remote::{Deed, line};

/// All findings. One that could not be made is a finding, too.
pub(crate) async fn findings(site: &Site) -> Result<Vec<Finding>, StoreError> {
    let status: Result<StatusResponse, _> = site.requests.unary(path::STATUS, &StatusRequest {}).await;
    let status = match status.map_err(|failure| failure.error(Deed::Read, "the examination", &site.place)) {
        Ok(status) => Some(status),
        // Some servers tell it to the role root alone: all else is examined nevertheless.
        Err(error) if error.fault == Fault::Forbidden => None,
        Err(error) => return Err(error),
    };
    let answers = roll::ask_each(&site.members).await;
    let mut findings = vec![leader(status.as_ref()), members(&answers)];
    findings.extend(cluster(site.members.cluster.id()));
    findings.extend(version(&answers));
    findings.push(privileges(site).await);
    findings.push(space(site, status.as_ref()).await);
    findings.push(durability(version::durability(&roll::versions(&answers))));
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

fn durability(durability: Durability) -> Finding {
    match durability {
        Durability::Safe => finding(
            "durability",
            Verdict::Good,
            "a write is on the disks of a majority before it is confirmed (unless members run with --unsafe-no-fsync, which \
             they do not tell)",
        ),
        Durability::FenceOnly(why) => finding(
            "durability",
            Verdict::Warning,
            &format!("{why}; only the fence protects"),
        ),
    }
}

/// The least sound of the members that answer: each may come to lead.
fn version(answers: &[Told]) -> Option<Finding> {
    let versions = answers.iter().filter_map(|Told { host, status, .. }| {
        let told = line(&status.as_ref().ok()?.version);
        Some((Version::read(&told), told, host))
    });
    let (version, told, host) =
        versions.max_by_key(|(version, _, _)| (version.worth(), !version.removes_when_full()))?;
    let when_full = match version.removes_when_full() {
        true => "",
        false => "; while it is out of space no lease can be given back",
    };
    Some(match version.worth() {
        Worth::Sound => finding("version", Verdict::Good, &format!("etcd {told}")),
        Worth::EndsEarly => repaired_by(
            finding(
                "version",
                Verdict::Warning,
                &format!(
                    "etcd {told} ({host}): a stalled leader may end leases early (etcd-io/etcd#15247){when_full}"
                ),
            ),
            "upgrade every member to 3.4.31, 3.5.13 or later",
        ),
        Worth::TooOld => repaired_by(
            finding(
                "version",
                Verdict::Bad,
                &format!("etcd {told} ({host}) is older than 3.4"),
            ),
            "upgrade the cluster",
        ),
    })
}

fn leader(status: Option<&StatusResponse>) -> Finding {
    let Some(status) = status else {
        let untold = finding(
            "leader",
            Verdict::Warning,
            "the member tells how it stands, and its version, to the role root alone (from 3.5.28 on, until etcd-io/etcd#21663 \
             was mended)",
        );
        return repaired_by(
            untold,
            "examine it as a user with the role root, or upgrade every member",
        );
    };
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

fn members(answers: &[Told]) -> Finding {
    if let Some(divided) = roll::divided(answers) {
        return repaired_by(
            finding("members", Verdict::Bad, &format!("two may lead: {divided}")),
            "name the members of one cluster in the URL; one that was set up anew has to be added to it",
        );
    }
    let mut silent = Vec::new();
    for Told { host, status, .. } in answers {
        if let Err(failure) = status {
            silent.push(format!("{host}: {}", failure.told()));
        }
    }
    if !silent.is_empty() {
        return finding("members", Verdict::Warning, &silent.join("; "));
    }
    match answers.len() {
        1 => repaired_by(
            finding(
                "members",
                Verdict::Warning,
                "the URL names one member: while it is down nobody is elected, even if the others live",
            ),
            "name every member of the cluster, and run three",
        ),
        count => finding("members", Verdict::Good, &format!("all {count} answer")),
    }
}

/// To be compared with what is said by who was connected to another one: see
/// [`OneCluster`](crate::one_cluster::OneCluster).
fn cluster(id: Option<u64>) -> Option<Finding> {
    id.map(|id| finding("cluster", Verdict::Good, &format!("{id:016x}")))
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

async fn space(site: &Site, status: Option<&StatusResponse>) -> Finding {
    let alarms: Result<AlarmResponse, _> = site.requests.unary(path::ALARM, &AlarmRequest {}).await;
    let alarms = match alarms {
        Ok(alarms) => alarms.alarms,
        Err(failure) => {
            let error = failure.error(Deed::Read, "the alarms", &site.place);
            return finding("space", Verdict::Warning, &error.message);
        }
    };
    let rings = |kind| alarms.iter().any(|member| member.alarm == kind);
    let used = status.map_or_else(
        || "nobody knows how much".to_owned(),
        |status| format!("{} MB", status.db_size / 1_000_000),
    );
    if rings(NOSPACE) {
        let full = finding(
            "space",
            Verdict::Bad,
            &format!(
                "out of space (NOSPACE), {used} used: whoever holds a lease keeps it, nobody can take one"
            ),
        );
        return repaired_by(full, "etcdctl compact, etcdctl defrag, then etcdctl alarm disarm");
    }
    if rings(CORRUPT) {
        let corrupt = finding(
            "space",
            Verdict::Bad,
            "a member raises the alarm CORRUPT, its data differ from the others': nobody can take a lease",
        );
        return repaired_by(corrupt, "replace that member, then etcdctl alarm disarm");
    }
    finding("space", Verdict::Good, &format!("no alarm rings, {used} used"))
}
