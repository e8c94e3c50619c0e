//! MongoDB: the pipelines, and what is judged of their answers.

use super::{Wrong, row};

const SUITE: &[&str] = &["conformance::standalone_server::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "a token beyond the last is believed",
        "G23",
        "src/record/shape.rs",
        &[[
            "{ \"$lte\": [\"$generation\", token_max()] },",
            "{ \"$lte\": [\"$generation\", i64::MAX] },",
        ]],
        SUITE,
    ),
    row(
        "a term keeps a token that is ahead of the clock",
        "G4",
        "src/acquire.rs",
        &[[
            "generation: number(\"$generation\"),",
            "generation: bson!({ \"$ifNull\": [\"$generation\", 0_i64] }),",
        ]],
        &["conformance::standalone_server::", "decisions::"],
    ),
    row(
        "a token only counts",
        "G4",
        "src/acquire.rs",
        &[[
            "\"generation\": { \"$max\": [succession.generation, { \"$toLong\": \"$$NOW\" }] },",
            "\"generation\": succession.generation,",
        ]],
        &["conformance::standalone_server::", "purging::", "decisions::"],
    ),
    row(
        "a held lease is granted to whoever asks",
        "G1",
        "src/acquire.rs",
        &[[
            "{ \"$cond\": [mine.clone(), take_mine, free] }",
            "{ \"$cond\": [mine.clone(), take_mine, { \"$or\": [free, true] }] }",
        ]],
        SUITE,
    ),
    row(
        "an attempt is granted a second term",
        "G13",
        "src/acquire.rs",
        &[[
            "{ \"$and\": [this_attempt.clone(), expired_unreleased] }",
            "{ \"$and\": [this_attempt.clone(), { \"$or\": [expired_unreleased, true] }] }",
        ]],
        SUITE,
    ),
    row(
        "a renewal revives an expired lease",
        "G9",
        "src/pipeline.rs",
        &[[
            "bson!({ \"$and\": [unreleased(), { \"$gt\": [\"$expiresAt\", \"$$NOW\"] }] })",
            "bson!({ \"$and\": [unreleased()] })",
        ]],
        SUITE,
    ),
    row(
        "a renewal of several revives an expired lease",
        "G9",
        "src/renew/together.rs",
        &[[
            "{ \"$literal\": terms }] },\n held(),",
            "{ \"$literal\": terms }] },\n { \"$or\": [held(), { \"$eq\": [\"$released\", null] }] },",
        ]],
        SUITE,
    ),
    row(
        "a renewal of several does not compare the incarnation",
        "G14",
        "src/renew/together.rs",
        &[[
            "{ \"$eq\": [\"$incarnation\", first.incarnation.to_string()] },",
            "",
        ]],
        SUITE,
    ),
    row(
        "a term is compared without its attempt",
        "G5",
        "src/pipeline.rs",
        &[[
            "{ \"$eq\": [\"$attempt\", attempt_number(attempt)] },",
            "{ \"$gte\": [\"$attempt\", attempt_number(attempt).min(0)] },",
        ]],
        SUITE,
    ),
    row(
        "a term is compared without its token",
        "G8",
        "src/pipeline.rs",
        &[[
            "{ \"$eq\": [\"$generation\", token.signed()] },",
            "{ \"$gte\": [\"$generation\", token.signed().min(0)] },",
        ]],
        SUITE,
    ),
    row(
        "a lease is granted from the millisecond that is almost over",
        "G2",
        "src/pipeline.rs",
        &[[
            "bson!({ \"$add\": [\"$$NOW\", ttl_ms(ttl) + 1] })",
            "bson!({ \"$add\": [\"$$NOW\", ttl_ms(ttl)] })",
        ]],
        &["conformance::standalone_server::", "decisions::"],
    ),
    row(
        "an extension lasts for twice its ttl",
        "G17",
        "src/pipeline.rs",
        &[[
            "bson!({ \"$add\": [\"$$NOW\", ttl_ms(ttl) + 1] })",
            "bson!({ \"$add\": [\"$$NOW\", 2 * ttl_ms(ttl)] })",
        ]],
        SUITE,
    ),
    row(
        "a renewal that comes late takes back a later one",
        "G2",
        "src/pipeline.rs",
        &[[
            "\"expiresAt\": { \"$cond\": [shortens_nothing, later, expiry(ttl)] },",
            "\"expiresAt\": { \"$cond\": [{ \"$and\": [shortens_nothing, false] }, later, { \"$min\": [\"$expiresAt\", expiry(ttl)] }] },",
        ]],
        &["conformance::standalone_server::", "decisions::"],
    ),
    row(
        "what was seen is taken without a look at what it is by now",
        "G1",
        "src/short.rs",
        &[[
            "{ \"$eq\": [\"$$ROOT\", { \"$literal\": seen.document }] },\n { \"$eq\": [kinds.found, { \"$literal\": kinds.right }] },",
            "{ \"$ne\": [kinds.found, { \"$literal\": [seen.document] }] },\n { \"$eq\": [kinds.right.len() as i64, kinds.right.len() as i64] },",
        ]],
        &["conformance::standalone_server::", "seen::"],
    ),
    row(
        "a clean-up removes what was used a moment ago",
        "L13",
        "src/purge.rs",
        &[["{ \"$and\": [unused, rises] }", "{ \"$or\": [unused, rises] }"]],
        &["conformance::standalone_server::", "purging::"],
    ),
    row(
        "a clean-up forgets a token that the clock has just passed",
        "G4",
        "src/purge.rs",
        &[[
            "{ \"$and\": [unused, rises] }",
            "{ \"$and\": [unused, { \"$or\": [rises, true] }] }",
        ]],
        &["conformance::standalone_server::", "purging::"],
    ),
    row(
        "a claim lowers the mark that was raised since it was looked at",
        "G6",
        "src/fence/claim.rs",
        &[[
            "{ \"$and\": [{ \"$lt\": [\"$token\", token.signed()] }, free.clone()] },",
            "{ \"$and\": [{ \"$ne\": [\"$token\", token.signed()] }, free.clone()] },",
        ]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "entering does not compare the token",
        "G6",
        "src/fence/stripes.rs",
        &[[
            "\"_id\": id(resource, stripe), \"lease\": term.lease.as_str(), \"token\": term.token.signed() }",
            "\"_id\": id(resource, stripe), \"lease\": term.lease.as_str() }",
        ]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "a claim leaves the stripes of the term before as they are",
        "M4",
        "src/fence/stripes.rs",
        &[[
            "{ \"$lt\": [\"$token\", token.signed()] },",
            "{ \"$lt\": [\"$token\", token.signed().min(0)] },",
        ]],
        &["fence::", "fence_bumps::"],
    ),
    row(
        "a bumped mark lets its own number in",
        "G28",
        "src/fence/mark.rs",
        &[[
            "Some(Bson::Int64(bumped)) => token == Some(*bumped),",
            "Some(Bson::Int64(bumped)) => token < Some(*bumped),",
        ]],
        &["fence_bumps::"],
    ),
    row(
        "a bump is not above what was granted",
        "G28",
        "src/fence/claim.rs",
        &[[
            "let above = bump.above.max(granted);",
            "let above = bump.above.max(granted.and(None));",
        ]],
        &["fence_bumps::", "fence_refusals::"],
    ),
    row(
        "a document of a later term is written over",
        "M5",
        "src/fence/documents/condition.rs",
        &[[
            "itself(\"$lte\", self.token.signed())",
            "itself(\"$gte\", self.token.signed().min(0))",
        ]],
        &["fence_documents::", "fence_statements::"],
    ),
    row(
        "leases are kept in a database that no fail-over keeps",
        "M1",
        "src/database.rs",
        &[["if database != LOCAL {", "if database != LOCAL || true {"]],
        &["database::"],
    ),
    row(
        "a member that stands alone is gone by",
        "M5",
        "src/fence/look.rs",
        &[[
            "true => Ok(Err(self.left_alone(subject))), false =>",
            "true if subject.is_empty() => Ok(Err(self.left_alone(subject))), _ =>",
        ]],
        &["standalone::"],
    ),
    row(
        "another store is taken for the one that was met first",
        "M10",
        "src/identity.rs",
        &[[
            "Some(theirs) if theirs == *ours => Ok(()),",
            "Some(theirs) if theirs == *ours || true => Ok(()),",
        ]],
        &["exchanged::"],
    ),
    row(
        "a store without a mark is taken for the one that was met first",
        "M10",
        "src/identity.rs",
        &[[
            "            None => match self.met.id.get() {\n                Some(ours) => ours,\n                None => return Ok(()),\n            },",
            "            None => return Ok(()),",
        ]],
        &["exchanged::"],
    ),
    row(
        "a store gets no mark",
        "M10",
        "src/identity.rs",
        &[[
            "if self.identity.met.is_marked.load(Ordering::SeqCst) {",
            "if self.identity.met.is_marked.load(Ordering::SeqCst) || true {",
        ]],
        &["exchanged::", "lone::"],
    ),
    row(
        "a member that stands alone goes by what the server says alone",
        "M9",
        "src/lone.rs",
        &[[
            "let Some(of) = set.or_else(|| mark?.of.clone()) else {",
            "let Some(of) = set.or_else(|| mark.and(None)) else {",
        ]],
        &["lone::"],
    ),
    row(
        "the mark does not say whose member its server is",
        "M9",
        "src/identity.rs",
        &[[
            "update.insert(\"$set\", doc! { \"of\": of });",
            "let _ = (&mut update, of);",
        ]],
        &["lone::"],
    ),
    row(
        "a member that stands alone goes by the mark alone",
        "M9",
        "src/lone.rs",
        &[[
            "let Some(of) = set.or_else(|| mark?.of.clone()) else {",
            "let Some(of) = set.and(None).or_else(|| mark?.of.clone()) else {",
        ]],
        &["lone::"],
    ),
    row(
        "a new connection beside others is not asked whose it is",
        "M10",
        "src/heard.rs",
        &[[
            "if let CmapEvent::ConnectionReady(_) | CmapEvent::PoolCleared(_) = event {",
            "if let CmapEvent::PoolCleared(_) = event {",
        ]],
        &["exchanged::"],
    ),
    row(
        "what was given back is listed as held",
        "L11",
        "src/list.rs",
        &[[
            "of_page.insert(\"released\", Bson::Null);",
            "of_page.insert(\"released\", doc! { \"$ne\": Bson::Null });",
        ]],
        &[
            "conformance::standalone_server::what_is",
            "conformance::standalone_server::last_page",
        ],
    ),
    row(
        "servers of replica sets of two names are taken for those of one",
        "M6",
        "src/strangers.rs",
        &[[
            "Ok(set) if set != name && options.repl_set_name.is_none() => {",
            "Ok(set) if set != name && options.repl_set_name.is_some() => {",
        ]],
        &["one_set::"],
    ),
    row(
        "servers of two replica sets of one name are taken for those of one",
        "M6",
        "src/strangers.rs",
        &[[
            "primary.is_some() && ours.is_some() && primary != ours",
            "primary.is_some() && ours.is_none() && primary != ours",
        ]],
        &["one_set::"],
    ),
    row(
        "a client whose user was made anew is kept",
        "M11",
        "src/lines.rs",
        &[[
            "is_over && self.since.elapsed() >= CLIENT_SERVES_LEAST",
            "is_over && self.since.elapsed() >= CLIENT_SERVES_LEAST * 100",
        ]],
        &["logins::"],
    ),
    row(
        "renewals go by the client of all requests",
        "M12",
        "src/lines.rs",
        &[["self.by(|own| &own.renewals)", "self.by(|own| &own.requests)"]],
        &["logins::"],
    ),
    row(
        "a release dials beside the renewals",
        "M12",
        "src/lines.rs",
        &[[
            "Err(_others) => (self.site(), None),",
            "Err(_others) => (self.site_of_renewals(), None),",
        ]],
        &["logins::"],
    ),
    row(
        "one lease is given back by a client that has to dial",
        "M12",
        "src/lines.rs",
        &[[
            "Ok(turn) => (self.site_of_renewals(), Some(turn)),",
            "Ok(turn) => (self.site(), Some(turn)),",
        ]],
        &["logins::"],
    ),
    row(
        "the connection of the renewals is made when the first is due",
        "M12",
        "src/lines.rs",
        &[[
            "if self.own.is_none() || !site.identity.is_in_doubt()",
            "if self.own.is_some() || !site.identity.is_in_doubt()",
        ]],
        &["logins::"],
    ),
    row(
        "a lease that was given back is not asked what it has granted",
        "G26",
        "src/fence/look.rs",
        &[[
            "let recorded = doc! { \"_id\": lease.as_str() };",
            "let recorded = doc! { \"_id\": lease.as_str(), \"released\": null };",
        ]],
        &["fence_marks::"],
    ),
    row(
        "a fence whose leases are elsewhere goes by an old record beside its marks",
        "G26",
        "src/fence/mod.rs",
        &[[
            "Leases::Elsewhere => None,",
            "Leases::Elsewhere => Some(collection(database, LEASES, REQUEST_TIME_MAX)),",
        ]],
        &["fence_bumps::"],
    ),
];
