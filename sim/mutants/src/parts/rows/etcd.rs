//! etcd: what a lease is by its keys, and what its transactions compare.

use super::{Wrong, row};

pub(super) const ROWS: &[Wrong] = &[
    row(
        "a term begins whatever was changed since the look",
        "E1",
        "src/acquire.rs",
        &[[
            "Compare::written_at(&key(Part::Record), found.record_revision),\n Compare::written_at(&key(Part::Term), found.term_revision),\n \
            Compare::written_at(&key(Part::Holder), found.holder_revision),",
            "",
        ]],
        &[
            "changed_since::",
            "conformance::one_of_sixteen",
            "conformance::first_acquire",
        ],
    ),
    row(
        "a term is not bound to its session",
        "E3",
        "src/acquire.rs",
        &[[
            "RequestOp::put(key(Part::Holder), holder.to_vec(), session.id),",
            "RequestOp::put(key(Part::Holder), holder.to_vec(), 0),",
        ]],
        &[
            "conformance::expired",
            "conformance::take_over",
            "conformance::first_acquire",
        ],
    ),
    row(
        "a held lease is granted to whoever asks",
        "G1",
        "src/found.rs",
        &[[
            "Occupancy::Held => Decision::Held,",
            "Occupancy::Held => Decision::Begin(Some(End::Expired)),",
        ]],
        &[
            "conformance::second_candidate",
            "conformance::one_of_sixteen",
            "conformance::first_acquire",
        ],
    ),
    row(
        "a released attempt is granted again",
        "G5",
        "src/found.rs",
        &[[
            "Occupancy::Vacant if ours && theirs >= asked",
            "Occupancy::Vacant if ours && theirs > asked",
        ]],
        &["conformance::same_attempt", "conformance::expired"],
    ),
    row(
        "an earlier attempt of the same process takes the lease back",
        "G5",
        "src/found.rs",
        &[[
            "Occupancy::Expired | Occupancy::Held if ours && theirs > asked => Decision::Superseded,",
            "",
        ]],
        &["conformance::earlier_attempt", "conformance::attempts"],
    ),
    row(
        "an expired attempt gets its old token again",
        "G9",
        "src/found.rs",
        &[[
            "Occupancy::Expired => Decision::Begin(Some(End::Expired)),",
            "Occupancy::Expired if ours && theirs == asked => Decision::Again, Occupancy::Expired => Decision::Begin(Some(End::Expired)),",
        ]],
        &["conformance::same_attempt"],
    ),
    row(
        "a term is compared without its attempt",
        "G5",
        "src/found.rs",
        &[["&& written.record.attempt == sitting.attempt", ""]],
        &["conformance::renewal", "conformance::release_"],
    ),
    row(
        "a term is compared without its incarnation",
        "G14",
        "src/found.rs",
        &[["&& written.record.holder.incarnation == sitting.incarnation", ""]],
        &["conformance::renewal", "conformance::release_"],
    ),
    row(
        "a release removes the record",
        "G5",
        "src/release.rs",
        &[[
            "RequestOp::delete(key(Part::Term)),",
            "RequestOp::delete(key(Part::Record)), RequestOp::delete(key(Part::Term)),",
        ]],
        &["conformance::release_"],
    ),
    row(
        "a release frees whatever term there is by now",
        "E11",
        "src/release.rs",
        &[
            [
                "let mut compare = vec![Compare::written_at(&key(Part::Record), found.record_revision)];",
                "let mut compare = Vec::new();",
            ],
            ["_ if *certain => {}", "_ => {}"],
            [
                "Some(known) => compare.push(Compare::ends_with(&holder, known.session)),",
                "#[allow(unreachable_patterns)] Some(known) => compare.push(Compare::ends_with(&holder, known.session)),",
            ],
            [
                "None => compare.push(Compare::written_at(&holder, 0)),",
                "#[allow(unreachable_patterns)] None => compare.push(Compare::written_at(&holder, 0)),",
            ],
        ],
        &["conformance::", "changed_since::", "late_requests::"],
    ),
    row(
        "what remains is told as the whole ttl",
        "G18",
        "src/look.rs",
        &[[
            "whole => (seconds(whole) + Duration::from_secs(1)).min(granted),",
            "_ => granted,",
        ]],
        &[
            "conformance::remaining",
            "conformance::renewal",
            "conformance::first_acquire",
        ],
    ),
    row(
        "a wish for an earlier term reaches the holder",
        "G8",
        "src/ask.rs",
        &[[
            "if written.token != request.token {",
            "if written.token < request.token {",
        ]],
        &["conformance::asking"],
    ),
    row(
        "a clean-up removes what was used a moment ago",
        "L13",
        "src/purge.rs",
        &[[
            "Some(age) if age >= request.unused_at_least(record.record.ttl) =>",
            "Some(_age) if record.terms > 0 =>",
        ]],
        &["conformance::records_in_use", "clean_up::"],
    ),
    row(
        "a clean-up removes what was taken since it was looked at",
        "L13",
        "src/purge.rs",
        &[[
            "compare.extend(conditions);",
            "drop(conditions); if false { compare.push(Compare::written_at(&note, 0)); }",
        ]],
        &["clean_up::"],
    ),
    row(
        "a write does not compare the mark",
        "E8",
        "src/fence/write.rs",
        &[[
            "let mut compare = vec![Compare::value(&key, &value)];",
            "let mut compare = Vec::new(); drop(value);",
        ]],
        &["fence::"],
    ),
    row(
        "a claim that comes late lowers the mark",
        "G6",
        "src/fence/claim.rs",
        &[[
            "compare: std::iter::once(Compare::written_at(&key, found.written))\n .chain(also)\n .collect(),",
            "compare: std::iter::once(Compare::not_written_after(&key, i64::MAX - i64::from(found.written < 0)))\n .chain(also)\n .collect(),",
        ]],
        &["fence::", "late_requests::"],
    ),
    row(
        "a term is granted beside a bump and admitted",
        "G28",
        "src/fence/claim.rs",
        &[[
            "if self.set(resource, &found, &lifted, none_above).await? {",
            "drop(none_above); if self.set(resource, &found, &lifted, None).await? {",
        ]],
        &["fence_bumps::"],
    ),
    row(
        "a bumped mark lets its own number in",
        "G28",
        "src/fence/mark.rs",
        &[["bumped: lease.is_some(),", "bumped: false,"]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "a connection that has ended is replaced by the transport",
        "E15",
        "src/once.rs",
        &[[
            "if std::mem::replace(&mut self.was_asked, true) {",
            "if std::mem::replace(&mut self.was_asked, false) {",
        ]],
        &["exchanged::", "conformance::first_acquire"],
    ),
    row(
        "an answer of another cluster is believed",
        "E15",
        "src/connection.rs",
        &[[
            "(Some(ours), Some(theirs)) if ours != theirs =>",
            "(Some(ours), Some(theirs)) if ours < theirs && ours > theirs =>",
        ]],
        &["http_proxy::", "conformance::first_acquire"],
    ),
    row(
        "a member that tells only root how it stands is taken for one of ours",
        "E15",
        "src/dial.rs",
        &[
            [
                "Err(_denied) => connection.told_to_anybody().await,",
                "Err(_denied) => Ok(None),",
            ],
            [
                "if connection.cluster.is_none() {",
                "if connection.cluster.is_none() && host.is_empty() {",
            ],
        ],
        &["denied_status::"],
    ),
    row(
        "members that tell only root how they stand are not told apart",
        "E15",
        "src/roll.rs",
        &[[
            "cluster = connection.told_to_anybody().await.unwrap_or(None);",
            "cluster = None;",
        ]],
        &["denied_status::"],
    ),
    row(
        "of a member's addresses only the first is asked which cluster it is of",
        "E15",
        "src/roll.rs",
        &[[
            "let asking = addresses.iter().map(async |address| {",
            "let asking = addresses.iter().take(1).map(async |address| {",
        ]],
        &["roll::", "members::members_of_different_clusters"],
    ),
    row(
        "members of two clusters are taken for those of one",
        "E15",
        "src/roll.rs",
        &[["(clusters.len() > 1).then(", "(clusters.len() > 2).then("]],
        &[
            "roll::",
            "members::members_of_different_clusters",
            "conformance::first_acquire",
        ],
    ),
    row(
        "the record beside a mark bounds no first claim",
        "G26",
        "src/fence/look.rs",
        &[[
            "granted: record.and_then(|row| FencingToken::from_signed(row.mod_revision).ok()),",
            "granted: record.and_then(|row| FencingToken::from_signed(-row.mod_revision).ok()),",
        ]],
        &["fence_marks::"],
    ),
    row(
        "a port of TLS is told as a member that is away",
        "G31",
        "src/dial.rs",
        &[[
            "Security::Plain if failure.is_of_the_way() => Failure::undialled(format!(",
            "Security::Plain if !failure.is_of_the_way() => Failure::undialled(format!(",
        ]],
        &["certificates::"],
    ),
    row(
        "a fence whose leases are elsewhere goes by an old record beside its marks",
        "G26",
        "src/fence/claim.rs",
        &[[
            "(leases == Leases::Here).then_some(lease)",
            "(leases == Leases::Here || leases == Leases::Elsewhere).then_some(lease)",
        ]],
        &["fence_bumps::", "fence::"],
    ),
];
