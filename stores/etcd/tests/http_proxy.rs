//! A proxy that speaks HTTP/2 before the members, as a service mesh or an ingress has: it may lead each
//! request of one connection to another server, and answers some itself.
use crate::common::{Scratch, name, renewal, request, seconds, take};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::{
    Acquired, Fault, Fence, FenceError, FencingToken, Interest, LeaseStore, Leases, Renewed, ResourceName,
    Scope, StoreError, Term,
};
use tenure_etcd::EtcdFence;
use tenure_testkit::{Etcd, EtcdOptions, eventually_async};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

const PATIENCE: Duration = Duration::from_secs(60);

/// What it does with the next request.
#[derive(Clone)]
enum Way {
    To(Channel),
    /// Denies it to tell how the member stands, as etcd 3.5.28 does to whoever has not the role root.
    DenyingStatus(Channel),
    /// Answers itself, as where it has no way.
    Status(StatusCode),
    /// The same, in the words of the protocol.
    GrpcStatus(&'static str),
}

pub struct HttpProxy {
    pub address: SocketAddr,
    way: Arc<Mutex<Way>>,
    accepting: JoinHandle<()>,
}

impl HttpProxy {
    async fn to(etcd: &Etcd) -> Self {
        Self::by(to(etcd)).await
    }

    pub async fn denying_status(etcd: &Etcd) -> Self {
        Self::by(Way::DenyingStatus(member(etcd))).await
    }

    async fn by(way: Way) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let way = Arc::new(Mutex::new(way));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&way)));
        Self {
            address,
            way,
            accepting,
        }
    }

    fn url(&self) -> String {
        format!("etcd://{}", self.address)
    }

    /// From the next request on, of whatever connection.
    fn go(&self, way: Way) {
        *self.way.lock().unwrap() = way;
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn to(etcd: &Etcd) -> Way {
    Way::To(member(etcd))
}

fn member(etcd: &Etcd) -> Channel {
    let member = Endpoint::from_shared(format!("http://{}", etcd.address(0))).unwrap();
    member.connect_lazy()
}

async fn accept(listener: TcpListener, way: Arc<Mutex<Way>>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let way = Arc::clone(&way);
        let answering = service_fn(move |request| answer(way.lock().unwrap().clone(), request));
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        connections.spawn(server.serve_connection(TokioIo::new(client), answering));
    }
}

async fn answer(way: Way, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let status = |status| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        response
    };
    let by_grpc = |code: &str| {
        let mut response = status(StatusCode::OK);
        let headers = response.headers_mut();
        headers.insert("content-type", "application/grpc".parse().unwrap());
        headers.insert("grpc-status", code.parse().unwrap());
        response
    };
    Ok(match way {
        Way::DenyingStatus(_) if request.uri().path() == "/etcdserverpb.Maintenance/Status" => by_grpc("7"),
        Way::To(mut member) | Way::DenyingStatus(mut member) => {
            let ready = poll_fn(|context| Service::poll_ready(&mut member, context)).await;
            let asked = async { member.call(request.map(Body::new)).await };
            match ready {
                Ok(()) => asked.await.unwrap_or_else(|_| status(StatusCode::BAD_GATEWAY)),
                Err(_) => status(StatusCode::BAD_GATEWAY),
            }
        }
        Way::Status(code) => status(code),
        Way::GrpcStatus(code) => by_grpc(code),
    })
}

fn not_admitted(refused: FenceError) -> StoreError {
    match refused {
        FenceError::Store(error) => error,
        other => panic!("{other}"),
    }
}

/// The true cluster's leader is another, and its lease is not over.
#[tokio::test]
async fn answer_of_another_cluster_on_the_same_connection_is_believed_by_nobody() {
    let start = async || Etcd::start(EtcdOptions::default()).await.unwrap();
    let (ours, strange) = (start().await, start().await);
    let proxy = HttpProxy::to(&ours).await;
    let store = Scratch::on(&proxy.url()).store().await;
    let fence = EtcdFence::connect(&proxy.url(), Leases::Elsewhere).await.unwrap();
    let (ledger, term) = (
        ResourceName::new("ledger").unwrap(),
        Term::new(name("job"), FencingToken::new(7).unwrap()),
    );
    let claim = async || fence.claim(&ledger, &term).await.err().map(not_admitted);
    let held = request("held", "holder", seconds(300));
    let beat = [renewal(&held, take(&store, &held).await.token)];
    let renew = async || store.renew(&beat).await.remove(0);
    // On each kind of connection that there is, so that none is made later.
    eventually_async(PATIENCE, "a renewal", renew).await;
    assert_eq!(claim().await, None);
    let mut watch = store
        .watch(&Scope::Prefix(String::new()), Interest::Everything)
        .await
        .unwrap();

    proxy.go(to(&strange));
    let refusals = [
        ("a renewal", renew().await.err()),
        ("a claim", claim().await),
        (
            "an acquisition",
            store.acquire(&request("job", "other", seconds(300))).await.err(),
        ),
    ];
    for (what, error) in refusals {
        let error = error.unwrap_or_else(|| panic!("{what} of another cluster counts"));
        assert_eq!(error.fault, Fault::AnotherStore, "{what}: {error}");
        assert!(error.message.contains("for cluster"), "{what}: {error}");
    }

    proxy.go(to(&ours));
    let renewed = eventually_async(PATIENCE, "a renewal", renew).await;
    assert!(matches!(renewed, Renewed::Extended { .. }), "{renewed:?}");
    let given = async || store.acquire(&request("job", "other", seconds(300))).await;
    let granted = eventually_async(PATIENCE, "an acquisition", given).await;
    assert!(matches!(granted, Acquired::Granted(_)), "{granted:?}");
    let told = tokio::time::timeout(PATIENCE, watch.next())
        .await
        .expect("in time");
    told.expect("it is of a stream that was there before");
}

/// As while it reads its routes anew. Each of them would be a mistake that only a person can mend, if it were
/// said by etcd.
#[tokio::test]
async fn proxy_that_answers_in_place_of_a_member_is_a_member_that_is_away() {
    let etcd = crate::common::shared().await;
    let proxy = HttpProxy::to(etcd).await;
    let store = Scratch::on(&proxy.url()).store().await;
    let asked = request("job", "holder", seconds(300));
    take(&store, &asked).await;
    let ways =
        [400, 401, 403, 404, 421, 500, 502, 503].map(|code| Way::Status(StatusCode::from_u16(code).unwrap()));
    // Envoy's, where there is no route to what is asked for in the words of the protocol.
    for way in ways.into_iter().chain([Way::GrpcStatus("12")]) {
        eventually_async(PATIENCE, "an answer", || store.get(&asked.name)).await;
        proxy.go(way);
        // At first on a connection that is there, then where it is made.
        for _try in 0..2 {
            let error = store.acquire(&asked).await.expect_err("nobody can be asked");
            assert_eq!(error.fault, Fault::Unreachable, "{error}");
        }
        let over = store
            .watch(&Scope::Prefix(String::new()), Interest::Everything)
            .await
            .err()
            .expect("nobody can be asked");
        assert_eq!(over.fault, Fault::Unreachable, "{over}");
        proxy.go(to(etcd));
    }
}
