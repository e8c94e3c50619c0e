//! What every kind of fence counts when it refuses.
use metrics_exporter_prometheus::PrometheusBuilder;
use tenure::{Fence, FencingToken, LeaseName, ResourceName, Term, Watermark};
use tenure_testkit::{RedisOptions, RedisServer};

fn term(lease: &str, token: u64) -> Term {
    Term::new(LeaseName::new(lease).unwrap(), FencingToken::new(token).unwrap())
}

/// Has the fence refuse two stale claims and a foreign one, and a gate before it one more.
async fn refuse_three(fence: &dyn Fence) {
    let ledger = ResourceName::new("ledger").unwrap();
    for (lease, token, is_admitted) in [
        ("nightly", 5, true),
        ("nightly", 9, true),
        ("nightly", 5, false),
        ("nightly", 6, false),
        ("hourly", 9, false),
        ("nightly", 9, true),
    ] {
        let claimed = fence.claim(&ledger, &term(lease, token)).await;
        assert_eq!(claimed.is_ok(), is_admitted, "{lease} {token}: {claimed:?}");
        if let (5, Err(refusal)) = (token, claimed) {
            // One more, which a gate before the fence has refused by what it knows.
            fence.note_refused(&refusal);
        }
    }
}

#[test]
fn refused_writes_are_counted_by_their_reason_by_every_kind_of_fence() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fence.db");
    tenure::sqlite::SqliteFence::install(&rusqlite::Connection::open(&file).unwrap()).unwrap();
    let server = runtime
        .block_on(RedisServer::start(RedisOptions::durable()))
        .unwrap();
    let redis = format!("{}?prefix=counted", server.url());
    let redis = runtime
        .block_on(tenure::redis::RedisFence::connect(&redis))
        .unwrap();
    let fences: [(&str, Box<dyn Fence>); 3] = [
        ("a watermark", Box::new(Watermark::new())),
        (
            "SQLite",
            Box::new(tenure::sqlite::SqliteFence::new(&file).unwrap()),
        ),
        (
            "Redis, as every store at the other end of a connection",
            Box::new(redis),
        ),
    ];
    for (what, fence) in fences {
        let recorder = PrometheusBuilder::new().build_recorder();
        let counted = recorder.handle();
        metrics::with_local_recorder(&recorder, || runtime.block_on(refuse_three(&*fence)));
        let counted = counted.render();
        for line in [
            "lease_fence_refusals{reason=\"stale\"} 3",
            "lease_fence_refusals{reason=\"foreign\"} 1",
        ] {
            assert!(counted.contains(line), "{what}: {counted}");
        }
    }
}
