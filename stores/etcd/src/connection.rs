//! A connection to a member, and the calls on it.

use crate::fault::Failure;
use crate::one_cluster::{OfAnother, cluster_of};
use crate::wire::cluster::{StatusRequest, StatusResponse};
use crate::wire::lease::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use crate::wire::{Answer, path};
use http::uri::PathAndQuery;
use tenure_remote::line;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// Longest answer that is taken, in bytes: a page of leases with the longest notes is far below.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A connection to a member. The token is a secret, so it is never shown: no `Debug`.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) channel: Channel,
    pub(crate) token: Option<MetadataValue<Ascii>>,
    /// Of which cluster the member said that it is: known before anything else is asked of it.
    pub(crate) cluster: Option<u64>,
    /// Which member it is, for people.
    pub(crate) host: String,
}

impl Connection {
    /// One request, one answer.
    pub(crate) async fn unary<Asked, Answered>(
        &self,
        path: &'static str,
        request: Asked,
    ) -> Result<Answered, Status>
    where
        Asked: prost::Message + Send + Sync + 'static,
        Answered: Answer,
    {
        let mut grpc = self.ready().await?;
        let codec = ProstCodec::<Asked, Answered>::default();
        let request = self.signed(request);
        let answer = grpc
            .unary(request, PathAndQuery::from_static(path), codec)
            .await?;
        self.is_ours(answer.into_inner())
    }

    /// A stream of requests, and one of answers.
    pub(crate) async fn stream<Asked, Answered>(
        &self,
        path: &'static str,
        requests: impl tokio_stream::Stream<Item = Asked> + Send + 'static,
    ) -> Result<Answers<Answered>, Status>
    where
        Asked: prost::Message + Send + Sync + 'static,
        Answered: Answer,
    {
        let mut grpc = self.ready().await?;
        let codec = ProstCodec::<Asked, Answered>::default();
        let request = self.signed(requests);
        let answer = grpc
            .streaming(request, PathAndQuery::from_static(path), codec)
            .await?;
        Ok(Answers {
            answers: answer.into_inner(),
            connection: self.clone(),
        })
    }

    /// The answer, if it is of the cluster that the member is of. A proxy that speaks HTTP/2 leads each
    /// request of one connection to whomever it likes: what another cluster says of a lease is believed by
    /// nobody.
    fn is_ours<Answered: Answer>(&self, answer: Answered) -> Result<Answered, Status> {
        match (self.cluster, cluster_of(answer.header())) {
            (Some(ours), Some(theirs)) if ours != theirs => Err(OfAnother::status(format!(
                "{} has answered for cluster {theirs:016x}, and before for {ours:016x}; have a proxy lead to the members of one",
                self.host
            ))),
            (Some(_) | None, Some(_) | None) => Ok(answer),
        }
    }

    /// How the member stands.
    pub(crate) async fn status(&self) -> Result<StatusResponse, Failure> {
        let asked = self.unary(path::STATUS, StatusRequest {});
        asked.await.map_err(Failure::Status)
    }

    /// Of which cluster the member is, by the head of an answer that every user may have: that there is no
    /// such session. How it stands some tell to the role root alone (etcd-io/etcd#21663).
    pub(crate) async fn told_to_anybody(&self) -> Result<Option<u64>, Failure> {
        let nobodys = LeaseTimeToLiveRequest { id: 0, keys: false };
        let answer: Result<LeaseTimeToLiveResponse, _> = self.unary(path::LEASE_TIME_TO_LIVE, nobodys).await;
        answer
            .map(|answer| cluster_of(answer.header))
            .map_err(Failure::Status)
    }

    /// Whether it shows credentials.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    async fn ready(&self) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        grpc.ready()
            .await
            .map_err(|error| Status::unavailable(line(error)))?;
        Ok(grpc)
    }

    fn signed<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        // A member that is cut off from the leader says so at once, and is passed over.
        request
            .metadata_mut()
            .insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }
}

/// A stream of answers.
pub(crate) struct Answers<Answered> {
    answers: Streaming<Answered>,
    connection: Connection,
}

impl<Answered: Answer> Answers<Answered> {
    /// The next one, as soon as it is there. Who gives this up misses none.
    pub(crate) async fn message(&mut self) -> Result<Option<Answered>, Status> {
        let answer = self.answers.message().await?;
        answer.map(|answer| self.connection.is_ours(answer)).transpose()
    }
}
