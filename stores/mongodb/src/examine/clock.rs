use super::{good, warning};
use crate::site::{Site, Topology};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{SelectionCriteria, ServerAddress};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Finding;
use tenure_remote::clock::{ASK_NEARER, Ahead, Skew, UNKNOWN, now_ms};

/// How long one server may take to tell its time.
const MEMBER_TIME_MAX: Duration = Duration::from_secs(2);

/// Most servers that are asked.
const MEMBERS_MAX: usize = 50;

impl Site {
    /// The clocks that judge expiries, against each other and against ours. Ours decides nothing: it is only
    /// the measure by which they are compared.
    pub(super) async fn examine_clock(&self, hello: &Document) -> Vec<Finding> {
        let judges = match self.is_tied_to_a_member() {
            // The driver asks no other.
            true => Judges::of(&Topology::Standalone, hello, &self.hosts),
            false => Judges::of(&self.topology, hello, &self.hosts),
        };
        let mut clocks = Vec::new();
        let mut silent = Vec::new();
        for host in judges.hosts.iter().take(MEMBERS_MAX) {
            match self.clock_of(host).await {
                Some(ahead) => clocks.push(ahead),
                None => silent.push(host.as_str()),
            }
        }
        for host in judges.passive.iter().take(MEMBERS_MAX) {
            if self.clock_of(host).await.is_none() {
                silent.push(host);
            }
        }
        let mut findings = Vec::new();
        if !silent.is_empty() {
            findings.push(warning(
                judges.what,
                format!("no answer from {}", silent.join(", ")),
                judges.silent,
            ));
        }
        let alone = || judges.alone(shown_ms(hello).map(|theirs| theirs - now_ms()));
        let compared = judges.compared(&clocks);
        findings.extend(compared.or_else(|| judges.hosts.is_empty().then(alone)));
        findings
    }

    /// How far a server's clock is ahead of ours; `None` if it does not answer.
    async fn clock_of(&self, host: &str) -> Option<Ahead> {
        let wanted = ServerAddress::parse(host).ok()?;
        let this_one = SelectionCriteria::Predicate(Arc::new(move |server| *server.address() == wanted));
        let admin = self.client.database("admin");
        let ask = || async {
            let hello = admin
                .run_command(doc! { "hello": 1 })
                .selection_criteria(this_one.clone());
            let hello = tokio::time::timeout(MEMBER_TIME_MAX, hello.into_future()).await;
            let hello = hello.ok().and_then(Result::ok).ok_or(())?;
            shown_ms(&hello).ok_or(())
        };
        // The first request to a server that nobody else asks dials, too.
        Ahead::asked(ask).await.ok()
    }
}

/// Whose clocks judge expiries.
struct Judges {
    what: &'static str,
    hosts: Vec<String>,
    /// Members that never judge, and count for the majority like the others.
    passive: Vec<String>,
    /// Which of them.
    named: &'static str,
    /// What one that is silent means.
    silent: &'static str,
    /// When clocks that differ shift an expiry.
    shifts: &'static str,
    synchronise: &'static str,
}

impl Judges {
    fn of(topology: &Topology, hello: &Document, hosts_of_url: &[String]) -> Self {
        let members = |kind: &str| {
            let hosts = hello.get_array(kind).into_iter().flatten();
            hosts.filter_map(Bson::as_str).map(str::to_owned).collect()
        };
        let (what, hosts, passive) = match topology {
            Topology::Standalone => ("servers", Vec::new(), Vec::new()),
            Topology::ReplicaSet { .. } => ("members", members("hosts"), members("passives")),
            // On a sharded cluster the time of a decision is that of the router it came through.
            Topology::Sharded => ("routers", hosts_of_url.to_vec(), Vec::new()),
        };
        let of_routers = *topology == Topology::Sharded;
        Self {
            what,
            hosts,
            passive,
            named: if of_routers { " that the URL names" } else { "" },
            silent: match of_routers {
                true => "bring them up, or take them out of the URL: nobody knows what their clocks show",
                false => "bring them up; with a majority down, no lease can be taken or renewed",
            },
            shifts: match of_routers {
                true => "whoever asks through another router finds every expiry shifted by as much",
                false => "a change of the primary shifts every expiry by as much",
            },
            synchronise: match of_routers {
                true => {
                    "synchronise the routers' clocks (ntpd, or chrony with maxslewrate 500), or take ttls far longer"
                }
                false => {
                    "synchronise the members' clocks (ntpd, or chrony with maxslewrate 500), or take ttls far longer"
                }
            },
        }
    }

    /// `None` where nobody was asked, or nobody has answered.
    fn compared(&self, clocks: &[Ahead]) -> Option<Finding> {
        let shown = || clocks.iter().map(|clock| clock.ms);
        let (least, most) = (shown().min()?, shown().max()?);
        let doubt_ms = clocks.iter().map(|clock| clock.doubt_ms).max()?;
        let skew = most - least;
        let detail = format!(
            "the clocks of {} {}{} differ by {skew} ms, and are {least} to {most} ms ahead of ours, each give or take {doubt_ms} ms (which \
             decides nothing)",
            clocks.len(),
            self.what,
            self.named,
        );
        Some(match Skew::of(clocks) {
            Skew::Small => good("clock", detail),
            Skew::Large => warning("clock", format!("{detail}; {}", self.shifts), self.synchronise),
            Skew::Unknown => warning("clock", format!("{detail}: {UNKNOWN}"), ASK_NEARER),
        })
    }

    /// The clock of the one server that can be asked.
    fn alone(&self, ahead_ms: Option<i64>) -> Finding {
        let Some(ahead) = ahead_ms else {
            return warning(
                "clock",
                "the server does not tell its time".to_owned(),
                "look at its clock by hand; it judges every expiry",
            );
        };
        let detail = format!("the server's is {ahead} ms ahead of ours (which decides nothing)");
        match self.what {
            "routers" => warning(
                "clock",
                format!("{detail}; it is one router's, and those of the others were not asked"),
                "name every router in the URL",
            ),
            _ => good("clock", detail),
        }
    }
}

/// `None` where the answer holds no time: that is no sign of a clock that is right.
fn shown_ms(hello: &Document) -> Option<i64> {
    Some(hello.get_datetime("localTime").ok()?.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::{Ahead, Document, Judges, Topology, doc};
    use tenure_core::Verdict;

    fn judges(topology: &Topology) -> Judges {
        let hello: Document = doc! { "hosts": ["a:1", "b:1"] };
        Judges::of(topology, &hello, &["m:1".to_owned(), "n:1".to_owned()])
    }

    #[test]
    fn clocks_of_every_router_of_the_url_are_compared_on_a_sharded_cluster() {
        let routers = judges(&Topology::Sharded);
        assert_eq!(routers.hosts, ["m:1", "n:1"]);
        let clock = |ms, doubt_ms| Ahead { ms, doubt_ms };
        let apart = routers
            .compared(&[clock(-400, 1), clock(300, 2)])
            .expect("two clocks");
        assert_eq!(apart.verdict, Verdict::Warning, "{apart:?}");
        assert!(
            apart.detail.contains("router") && apart.detail.contains("700 ms"),
            "{apart:?}"
        );
        let close = routers
            .compared(&[clock(-20, 1), clock(30, 2)])
            .expect("two clocks");
        assert_eq!(close.verdict, Verdict::Good, "{close:?}");
        // The same that the second one's request shows may be what it stalled for: nobody knows.
        let unknown = routers
            .compared(&[clock(-400, 1), clock(300, 700)])
            .expect("two clocks");
        assert_eq!(unknown.verdict, Verdict::Warning, "{unknown:?}");
        assert!(unknown.detail.contains("took so long"), "{unknown:?}");
        // Of a client that was given nobody knows the others.
        assert_eq!(routers.compared(&[]), None);
        assert_eq!(routers.alone(Some(3)).verdict, Verdict::Warning);
    }

    #[test]
    fn clocks_of_the_members_are_compared_in_a_replica_set_and_one_server_has_its_own() {
        let name = "rs".to_owned();
        assert_eq!(judges(&Topology::ReplicaSet { name }).hosts, ["a:1", "b:1"]);
        let alone = judges(&Topology::Standalone);
        assert!(alone.hosts.is_empty());
        assert_eq!(alone.alone(Some(3)).verdict, Verdict::Good);
    }
}
