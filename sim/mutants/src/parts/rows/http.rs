//! The fence over HTTP: what a request must show, who gets in beside whom, and what is answered and counted.

use super::{Wrong, row};

const HEADER: &[&str] = &["header::"];
const LAYER: &[&str] = &["layer::"];
const GATE: &[&str] = &["gate::"];
const BUMPS: &[&str] = &["bumps::"];
const BODY: &[&str] = &["body::", "effects::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "a request of an older term gets in",
        "H1",
        "src/gate/seat.rs",
        &[[
            "Some(mark) if token < mark => return Step::Stale { mark },",
            "Some(mark) if token < mark => {}",
        ]],
        LAYER,
    ),
    row(
        "the number of the mark alone lets in",
        "H1",
        "src/gate/seat.rs",
        &[[
            "is_some_and(|holder| holder.term == *term)",
            "is_some_and(|holder| holder.term.token == term.token)",
        ]],
        GATE,
    ),
    row(
        "a stale request is not answered with 409",
        "H1",
        "src/problem.rs",
        &[[
            "Self::Stale { .. } | Self::Superseded(_) => StatusCode::CONFLICT,",
            "Self::Stale { .. } | Self::Superseded(_) => StatusCode::PRECONDITION_FAILED,",
        ]],
        LAYER,
    ),
    row(
        "a stale request is told another problem",
        "H1",
        "src/problem.rs",
        &[[
            "urn:tenure:problem:token-stale",
            "urn:tenure:problem:token-is-stale",
        ]],
        LAYER,
    ),
    row(
        "a write passes without a token",
        "H1",
        "src/layer.rs",
        &[[
            "None => Err(Refusal::Missing { resource, lease }),",
            "None => Ok(None),",
        ]],
        LAYER,
    ),
    row(
        "a method that may change something needs no token",
        "H1",
        "src/protection.rs",
        &[[
            ".contains(method) {",
            ".contains(method) || *method == Method::PATCH {",
        ]],
        LAYER,
    ),
    row(
        "a read that shows a token does not claim",
        "H1",
        "src/layer.rs",
        &[[
            "if presented.is_none() && (self.needs)(parts) == Need::Optional {",
            "if (self.needs)(parts) == Need::Optional {",
        ]],
        LAYER,
    ),
    row(
        "the token of another lease claims",
        "H4",
        "src/layer.rs",
        &[[
            "Some(FencingHeader(term)) if term.lease != lease => {",
            "Some(FencingHeader(term)) if term.lease != lease && parts.headers.is_empty() => {",
        ]],
        LAYER,
    ),
    row(
        "a zero and what is below it are read as the first token",
        "H4",
        "src/header.rs",
        &[[
            "FencingToken::from_signed(i64::from(integer)).ok(),",
            "FencingToken::from_signed(i64::from(integer).max(1)).ok(),",
        ]],
        HEADER,
    ),
    row(
        "of two headers the first counts",
        "H4",
        "src/header.rs",
        &[["match values.count() {", "match values.count() * 0 {"]],
        HEADER,
    ),
    row(
        "of two leases in a header the last counts",
        "H4",
        "src/header.rs",
        &[[
            "(Lease::Missing, BareItemFromInput::String(name))",
            "(_, BareItemFromInput::String(name))",
        ]],
        HEADER,
    ),
    row(
        "a parameter that nobody knows is passed over",
        "H4",
        "src/header.rs",
        &[["self.unknown.get_or_insert(name);", "let _: String = name;"]],
        HEADER,
    ),
    row(
        "a later term gets in beside an older one",
        "H2",
        "src/gate/seat.rs",
        &[["if older > 0 {", "if older > usize::MAX - 1 {"]],
        GATE,
    ),
    row(
        "a clone of an admission keeps nobody waiting",
        "H2",
        "src/gate/admission.rs",
        &[
            [
                "#[derive(Clone)] pub struct Admission {",
                "pub struct Admission {",
            ],
            [
                "impl Drop for Inside {",
                "impl Clone for Admission { fn clone(&self) -> Self { let (seat, term) = (Arc::clone(&self.inside.seat), self.inside.term.clone()); Self { inside: Arc::new(Inside { seat, term }), _outer: self._outer.clone() } } } impl Drop for Inside {",
            ],
        ],
        &["gate::", "effects::"],
    ),
    row(
        "work that nobody waits for any more is broken off",
        "H2",
        "src/completion.rs",
        &[[
            "drop(work.await); drop(admission);",
            "drop(work); drop(admission);",
        ]],
        &["effects::"],
    ),
    row(
        "a later term gets in before the work is dropped",
        "H2",
        "src/completion.rs",
        &[[
            "work: Pin<Box<F>>, admission: Admission, } impl",
            "admission: Admission, work: Pin<Box<F>>, } impl",
        ]],
        &["endings::", "effects::"],
    ),
    row(
        "of two nested layers the outer one lets a later term in early",
        "H2",
        "src/gate/admission.rs",
        &[[
            "_outer: outer.map(Arc::new),",
            "_outer: outer.map(Arc::new).and(None),",
        ]],
        &["effects::"],
    ),
    row(
        "a body is read on after a later term has claimed",
        "H3",
        "src/body.rs",
        &[[
            "this.succession.as_ref().and_then(Succession::now)",
            "this.succession.as_ref().and_then(Succession::now).filter(|_| false)",
        ]],
        BODY,
    ),
    row(
        "who waits for a body is not woken by a later claim",
        "H3",
        "src/body.rs",
        &[[
            "let Some(succession) = this.succession else {",
            "let Some(succession) = this.succession.as_ref().filter(|_| false) else {",
        ]],
        BODY,
    ),
    row(
        "a body that has come as a whole is cut",
        "H3",
        "src/body.rs",
        &[[
            "if *this.failed || this.inner.is_end_stream() {",
            "if *this.failed {",
        ]],
        BODY,
    ),
    row(
        "a handler that fails by a body that was cut answers for itself",
        "H3",
        "src/service.rs",
        &[[
            "Some(superseded) if status.is_client_error() || status.is_server_error() => {",
            "Some(superseded) if status.is_informational() => {",
        ]],
        BODY,
    ),
    row(
        "the wait at the gate has no end",
        "H3",
        "src/gate/mod.rs",
        &[[
            "if timeout_at(deadline, change).await.is_err() {",
            "if timeout_at(deadline + WAIT_MAX, change).await.is_err() {",
        ]],
        &["gate::wait_is_bounded_", "gate::term_that_waits_"],
    ),
    row(
        "the line at the gate has no end",
        "H3",
        "src/gate/seat.rs",
        &[[
            "if state.waiting >= WAITING_MAX {",
            "if state.waiting >= usize::MAX {",
        ]],
        GATE,
    ),
    row(
        "a wait that was given up keeps its place in the line",
        "H3",
        "src/gate/seat.rs",
        &[["self.0.state().waiting -= 1;", "self.0.state().waiting -= 0;"]],
        GATE,
    ),
    row(
        "as many get in as want to",
        "H3",
        "src/gate/seat.rs",
        &[["if *count >= INSIDE_MAX {", "if *count >= usize::MAX {"]],
        GATE,
    ),
    row(
        "a term whose claim failed is let in",
        "H4",
        "src/gate/mod.rs",
        &[[
            "Err(error) => Err(refused(seat, term, error)), } };",
            "Err(_) => { seat.hold(term, claimed_at); Ok(()) } } };",
        ]],
        GATE,
    ),
    row(
        "the fence is never asked again",
        "G28",
        "src/gate/holder.rs",
        &[[
            "None if age >= ASKED_EVERY => News::Old,",
            "None if age >= ASKED_EVERY * 1_000_000 => News::Old,",
        ]],
        BUMPS,
    ),
    row(
        "beside the one that has the fence asked others get in by old news",
        "G28",
        "src/gate/holder.rs",
        &[[
            "Some(until) if age >= RELIED_ON_FOR && now < until",
            "Some(until) if age >= RELIED_ON_FOR * 1_000_000 && now < until",
        ]],
        BUMPS,
    ),
    row(
        "what the fence says when it is asked again ends no term",
        "G28",
        "src/gate/seat.rs",
        &[[
            "Err(refusal) => self.seat.unseat(&self.term, refusal),",
            "Err(refusal) => drop(refusal),",
        ]],
        BUMPS,
    ),
    row(
        "a store that does not answer ends the term that was confirmed",
        "H4",
        "src/gate/mod.rs",
        &[[
            "Err(_) | Ok(Err(_)) => Ok(()),",
            "Err(_) | Ok(Err(_)) => Err(seat.crowded()),",
        ]],
        BUMPS,
    ),
    row(
        "a refusal by the gate is not told to the fence",
        "G27",
        "src/gate/mod.rs",
        &[[
            "self.fence.count_refusal(&FenceError::Stale { resource: seat.resource().clone(), token: term.token, mark, });",
            "",
        ]],
        &["refusals::"],
    ),
    row(
        "a request that was cut short is not told to the fence",
        "G27",
        "src/layer.rs",
        &[["self.gate.note_superseded(superseded);", ""]],
        BODY,
    ),
    row(
        "a refusal is counted under another reason",
        "C12",
        "src/tally.rs",
        &[[
            "Refusal::Stale { .. } | Refusal::Superseded(_) => &self.stale,",
            "Refusal::Stale { .. } | Refusal::Superseded(_) => &self.foreign,",
        ]],
        LAYER,
    ),
];
