//! NATS: the record as it is kept, what each write compares, and the marks.

use super::{Wrong, row};

const SUITE: &[&str] = &["conformance::on_one_server::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "no write compares the last one",
        "N3",
        "src/api.rs",
        &[[
            "pub(crate) const EXPECTED: &str = \"Nats-Expected-Last-Subject-Sequence\";",
            "pub(crate) const EXPECTED: &str = \"Tenure-Expected-Nothing\";",
        ]],
        SUITE,
    ),
    row(
        "a token is not floored by the clock",
        "G4",
        "src/swap.rs",
        &[[
            "Floor::Wanted => self.clock.at_least(self.clock_ms(&lease_subject(name))).await,",
            "Floor::Wanted if false => self.clock.at_least(self.clock_ms(&lease_subject(name))).await, Floor::Wanted => Ok(0),",
        ]],
        SUITE,
    ),
    row(
        "a record is kept as held though it was given back",
        "G17",
        "src/record.rs",
        &[["\"released\": entry.released,", "\"released\": false,"]],
        SUITE,
    ),
    row(
        "a record is kept without its attempt",
        "G5",
        "src/record.rs",
        &[["\"attempt\": entry.attempt.number(),", "\"attempt\": 1,"]],
        SUITE,
    ),
    row(
        "a renewal leaves no trace in the record",
        "N1",
        "src/record.rs",
        &[["\"ttlMs\": entry.ttl.as_millis(),", "\"ttlMs\": 1000,"]],
        SUITE,
    ),
    row(
        "a wish is not read",
        "C13",
        "src/record.rs",
        &[[
            "asked_to_step_down: flag(\"stepDownAsked\")?,",
            "asked_to_step_down: flag(\"stepDownAsked\")? && false,",
        ]],
        SUITE,
    ),
    row(
        "a record of another form is read",
        "G23",
        "src/record.rs",
        &[[
            "if number(\"form\", \"form that this version knows\")? != FORM {",
            "if number(\"form\", \"form that this version knows\").is_err() && FORM == 0 {",
        ]],
        &["conformance::on_one_server::", "record_forms::"],
    ),
    row(
        "a clean-up removes what was used a moment ago",
        "L13",
        "src/purge.rs",
        &[["Ok((is_old && rises).then_some", "Ok((is_old || rises).then_some"]],
        &["conformance::on_one_server::", "clean_up::"],
    ),
    row(
        "a clean-up forgets a token that is ahead of the clock",
        "G4",
        "src/purge.rs",
        &[[
            "Ok((is_old && rises).then_some",
            "Ok((is_old && (rises || true)).then_some",
        ]],
        &["conformance::on_one_server::", "clean_up::"],
    ),
    row(
        "a clean-up removes what was taken since it was looked at",
        "L13",
        "src/purge.rs",
        &[["\"seq\": sequence + 1 });", "\"seq\": sequence + 1_000_000 });"]],
        &["conformance::on_one_server::", "clean_up::"],
    ),
    row(
        "a term's write goes over a record of a bucket that was made again",
        "N3",
        "src/swap.rs",
        &[[
            "self.put(name, entry, Condition::last_is(over, revision.epoch()))",
            "self.put(name, entry, Condition::last_is(over, self.last(name).await?.map_or(0, |last| last.epoch)))",
        ]],
        &["repeated::"],
    ),
    row(
        "a write of a term that has not claimed is let in",
        "G6",
        "src/fence/look.rs",
        &[[
            "decide_entry(resource, term, self.claimant(), self.token())",
            "decide_entry(resource, term, self.claimant(), self.token()).or(Ok(()))",
        ]],
        &[
            "fence::",
            "fence_history::",
            "fence_order::nothing_of_an_older_term_is_stored_after_a_claim_on_one_server",
        ],
    ),
    row(
        "a claim lowers the mark",
        "G6",
        "src/fence/look.rs",
        &[[
            "decide_claim(resource, term, self.claimant(), self.token(), limit)",
            "decide_claim(resource, term, self.claimant(), None, limit)",
        ]],
        &["fence::", "fence_history::"],
    ),
    row(
        "a write is compared with nothing but its own key",
        "N8",
        "src/fence/write.rs",
        &[[
            "Change::Put => &[(EXPECTED_OF, &guard)],",
            "Change::Put => &[(\"Tenure-Expected-Of\", &guard)],",
        ]],
        &["fence::"],
    ),
    row(
        "a bumped mark lets its own number in",
        "G28",
        "src/fence/mark.rs",
        &[["bumped: true,", "bumped: false,"]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "a bump is not above what was granted",
        "G28",
        "src/fence/claim.rs",
        &[["bump.above.max(granted)", "bump.above.max(granted.and(None))"]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "the bucket is judged when a store connects and never again",
        "N7",
        "src/bucket.rs",
        &[["self.judged(keys, info, subject)", "Ok(info)"]],
        &["edited::", "one_cluster::server_of"],
    ),
    row(
        "a full account is not told of",
        "N7",
        "src/room.rs",
        &[["Ok(limit) => limits.extend(limit),", "Ok(limit) => drop(limit),"]],
        &["limits::examination_"],
    ),
    row(
        "a full server is not told of",
        "N7",
        "src/room.rs",
        &[[
            "Some(of_servers) => limits.extend(of_servers),",
            "Some(of_servers) => drop(of_servers),",
        ]],
        &["limits::examination_"],
    ),
    row(
        "the moment at which a bucket was made is not compared",
        "N10",
        "src/one_bucket.rs",
        &[[
            "Some(ours) if ours != theirs => Err(",
            "Some(ours) if ours.is_empty() => Err(",
        ]],
        &["exchanged::"],
    ),
    row(
        "a server is not asked which bucket it has before it is asked anything else",
        "N10",
        "src/connect.rs",
        &[["self.bucket.recognise(&dialled, &self.host(server)).await?;", ""]],
        &["exchanged::"],
    ),
    row(
        "a bucket that was made again is believed over a connection of before",
        "N10",
        "src/one_bucket.rs",
        &[[
            "servers.bucket.check(&host, info).map_err(|why| {",
            "servers.bucket.check(&host, info).or(Ok(())).map_err(|why: String| {",
        ]],
        &["exchanged::"],
    ),
    row(
        "the clone of a server is taken for it",
        "N10",
        "src/roll.rs",
        &[[
            "Some(is_the_same && !are_two)",
            "Some(is_the_same && !(are_two && info.is_null()))",
        ]],
        &["one_cluster::"],
    ),
    row(
        "leaf nodes of no cluster are taken for servers of one",
        "N10",
        "src/dialled.rs",
        &[[
            ".is_some_and(|cluster| cluster != server.server_name)",
            ".is_some()",
        ]],
        &["one_cluster::"],
    ),
    row(
        "who has no connection for renewals takes a lease",
        "N4",
        "src/site.rs",
        &[[
            "tokio::try_join!(self.of_renewals.open(), self.kv.link.open())?;",
            "",
        ]],
        &["limits::store_", "limits::bucket_"],
    ),
    row(
        "the record beside a mark bounds no first claim",
        "G26",
        "src/fence/look.rs",
        &[[
            "Ok(Some(entry.token))\n    }",
            "Ok(Some(entry.token).filter(|_| leases != Leases::Here))\n    }",
        ]],
        &["fence_marks::"],
    ),
    row(
        "a bucket of a domain of its own is not told",
        "N10",
        "src/examine.rs",
        &[[
            "Some(domain) if !domain.is_empty() => warning(",
            "Some(domain) if domain.is_empty() => warning(",
        ]],
        &["one_cluster::"],
    ),
    row(
        "data in a folder that systems empty is believed to stay",
        "N6",
        "src/durability.rs",
        &[[
            "_ if config[\"store_dir\"].as_str().is_some_and(is_emptied) => Sync::Nowhere,",
            "_ if config[\"store_dir\"].as_str().is_some_and(|folder| is_emptied(folder) && folder.starts_with(\"/tmp/nats\")) => Sync::Nowhere,",
        ]],
        &["examination::"],
    ),
    row(
        "a fence whose leases are elsewhere goes by an old record beside its marks",
        "G26",
        "src/fence/look.rs",
        &[[
            "lease.filter(|_| leases == Leases::Here)",
            "lease.filter(|_| leases == Leases::Here || leases == Leases::Elsewhere)",
        ]],
        &["fence_bumps::", "fence::"],
    ),
];
