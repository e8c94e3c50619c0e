//! What the fence over HTTP costs: requests a second with and without the layer, on a handler that does
//! nothing.

use crate::figures::judge;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::put;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::contract::Term;
use tenure::http::{FENCING_TOKEN, FenceLayer, FencingHeader, Gate, Protection};
use tenure::{FencingToken, LeaseName, ResourceName, Watermark};
use tenure_testkit::ScratchDir;
use tokio::net::TcpListener;

/// Connections that send one request after the other.
const CONNECTIONS: usize = 16;

/// How long one side runs before it is the other's turn.
const TURN: Duration = Duration::from_millis(500);

pub async fn measure(turns: u32) {
    let folder = ScratchDir::new("bench-http");
    let lease = LeaseName::new("bench").unwrap();
    let protection = Protection {
        resource: ResourceName::new("bench").unwrap(),
        lease: lease.clone(),
    };
    let gate = Gate::new(Arc::new(Watermark::open(folder.join("marks")).unwrap()));
    let routes = || Router::new().route("/", put(|| async {}));
    let bare = serve(routes()).await;
    let fenced = serve(routes().layer(FenceLayer::new(gate, protection))).await;
    let header = FencingHeader(Term::new(lease, FencingToken::new(7).unwrap()));
    let (mut without, mut with) = (Vec::new(), Vec::new());
    // The first turn of each warms up.
    for turn in 0..=turns {
        for (address, rates) in [(bare, &mut without), (fenced, &mut with)] {
            let rate = requests_a_second(address, &header).await;
            if turn > 0 {
                rates.push(rate);
            }
        }
    }
    println!(
        "PUT over {CONNECTIONS} connections on loopback, clients and service on the same cores, {turns} turns of {TURN:?} each:"
    );
    let (without, with) = (median(without), median(with));
    println!("  without the layer  {without:.0} requests a second");
    println!("  with the layer     {with:.0} requests a second");
    judge("  without, times with", without / with, 1.15, "");
}

async fn serve(routes: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    address
}

/// Both sides get the header, so that only the layer differs.
async fn requests_a_second(address: SocketAddr, header: &FencingHeader) -> f64 {
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let start = Instant::now();
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (client, value) = (client.clone(), header.value());
            tokio::spawn(async move {
                let mut answered = 0_u32;
                while start.elapsed() < TURN {
                    let request =
                        Request::put(format!("http://{address}/")).header(FENCING_TOKEN, value.clone());
                    let request = request.body(Body::empty()).unwrap();
                    let response = client.request(request).await.unwrap();
                    assert_eq!(response.status(), StatusCode::OK);
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    let mut answered = 0;
    for connection in connections {
        answered += connection.await.unwrap();
    }
    f64::from(answered) / start.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}
