//! What a server keeps, and the rules of the scripts: each a function of a few lines, compared with the
//! script itself below.

use super::Flaw;

/// What a server keeps of its quorum, or is told to keep. 0 is none.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Notes {
    pub(super) id: u8,
    pub(super) list: u8,
    pub(super) complete: bool,
}

/// What a server keeps after it was told (`membership.lua`): `instead` of the list that was seen there, or
/// where it keeps none.
pub(super) fn keep(kept: Notes, told: Notes, instead: Option<u8>, flaw: Option<Flaw>) -> Notes {
    let is_as_seen = instead == Some(kept.list);
    let is_overwritten = flaw == Some(Flaw::LateKeepOverwrites) && !(kept.complete && told.list == kept.list);
    let is_first = instead.is_none() && told.list != 0 && (kept.list == 0 || is_overwritten);
    if is_as_seen || is_first {
        return told;
    }
    if kept.id == 0 && instead.is_none() {
        return Notes { id: told.id, ..kept };
    }
    let is_same = kept.list == told.list || flaw == Some(Flaw::CompletesAnyList);
    Notes {
        complete: kept.complete || told.complete && kept.list != 0 && kept.id == told.id && is_same,
        ..kept
    }
}

/// Whether a server is another member by now than who asks has met (`quorum_member.lua`).
pub(super) fn is_another_member(own: u8, met: u8) -> bool {
    met != 0 && own != 0 && own != met
}

#[cfg(test)]
mod tests {
    use super::{Notes, is_another_member, keep};
    use crate::script::Script;
    use tenure_testkit::{RedisOptions, RedisServer};

    type Fields = (Option<String>, Option<String>, Option<String>);

    const KEY: &str = "{model}:quorum";

    fn text(number: u8) -> Option<String> {
        (number > 0).then(|| number.to_string())
    }

    /// The text of a list.
    fn list_text(list: u8) -> Option<String> {
        (list > 0).then(|| format!("{list}=a:1 3=b:2"))
    }

    /// All that can be made of two ids and two lists.
    fn all() -> Vec<Notes> {
        let ids = (0..3).flat_map(|id| (0..3).map(move |list| (id, list)));
        let notes = ids.flat_map(|(id, list)| [false, true].map(|complete| Notes { id, list, complete }));
        notes.collect()
    }

    /// A server that keeps this.
    fn keeping(notes: Notes) -> redis::Pipeline {
        let mut pipeline = redis::pipe();
        pipeline.del(KEY).ignore();
        // As of an entry of which a person has removed a part: what is complete is of no list.
        pipeline.hset(KEY, "complete", u8::from(notes.complete)).ignore();
        for (field, text) in [("member", text(notes.id)), ("members", list_text(notes.list))] {
            if let Some(text) = text {
                pipeline.hset(KEY, field, text).ignore();
            }
        }
        pipeline
    }

    /// The model and the scripts must not drift apart.
    #[tokio::test]
    async fn model_of_the_membership_scripts_is_what_they_do_on_a_server() {
        let server = RedisServer::start(RedisOptions::default())
            .await
            .expect("a server");
        let client = redis::Client::open(server.url()).expect("a URL");
        let mut connection = client
            .get_multiplexed_async_connection()
            .await
            .expect("connected");
        let membership = include_str!("../../lua/membership.lua");
        let of_member = format!(
            "{}return is_another_member(KEYS[1], ARGV[1]) and 1 or 0",
            include_str!("../../lua/quorum_member.lua")
        );
        let (membership, of_member) = (Script::new(membership.to_owned()), Script::new(of_member));
        for kept in all() {
            for told in all().into_iter().filter(|told| told.id > 0) {
                for instead in [None, Some(0), Some(1), Some(2)] {
                    let mut arguments = crate::script::Arguments::on([KEY.to_owned()])
                        .with(told.id)
                        .with(list_text(told.list).unwrap_or_default())
                        .with(u8::from(told.complete));
                    if let Some(seen) = instead {
                        arguments = arguments
                            .with("instead")
                            .with(list_text(seen).unwrap_or_default());
                    }
                    let mut asked = keeping(kept);
                    asked.add_command(arguments.by_text(&membership));
                    let ((id, list, complete),): (Fields,) =
                        asked.query_async(&mut connection).await.expect("an answer");
                    let by_model = keep(kept, told, instead, None);
                    let expected = (text(by_model.id), list_text(by_model.list), by_model.complete);
                    assert_eq!(
                        (
                            id,
                            list.filter(|list| !list.is_empty()),
                            complete.as_deref() == Some("1")
                        ),
                        expected,
                        "{kept:?} {told:?} {instead:?}"
                    );
                }
            }
            for met in 0..3 {
                let met_text = text(met).unwrap_or_default();
                let arguments = crate::script::Arguments::on([KEY.to_owned()]).with(met_text);
                let mut asked = keeping(kept);
                asked.add_command(arguments.by_text(&of_member));
                let (answer,): (u8,) = asked.query_async(&mut connection).await.expect("an answer");
                assert_eq!(answer == 1, is_another_member(kept.id, met), "{kept:?} {met}");
            }
        }
        // They are the same members, whatever hosts led to them.
        let kept = Notes {
            id: 1,
            list: 1,
            complete: false,
        };
        let arguments = crate::script::Arguments::on([KEY.to_owned()])
            .with(1)
            .with("1=z:1 3=y:2")
            .with(1);
        let mut asked = keeping(kept);
        asked.add_command(arguments.by_text(&membership));
        let (answer,): (Fields,) = asked.query_async(&mut connection).await.expect("an answer");
        assert_eq!(answer, (text(1), list_text(1), Some("1".to_owned())));
    }
}
