use super::{Entry, Kept, MemberId, Membership, Roster};
use tenure_core::Fault;

fn id(number: u8) -> MemberId {
    MemberId::read(&format!("{number:032x}")).unwrap()
}

fn membership(hosts: [&str; 3]) -> Membership {
    Membership::new(hosts.map(str::to_owned).into())
}

fn roster(members: [(u8, &str); 3]) -> Roster {
    Roster::of(members.map(|(number, host)| (id(number), host.to_owned())))
}

fn kept(own: Option<u8>, all: Option<&Roster>) -> Kept {
    Kept {
        id: own.map(id),
        roster: all.cloned(),
        complete: false,
    }
}

/// As a list is kept that is complete.
fn told(own: u8, all: &Roster) -> Kept {
    Kept {
        complete: true,
        ..kept(Some(own), Some(all))
    }
}

/// Each is given an id, and the list is recorded when all have one.
#[test]
fn list_is_recorded_when_all_were_met() {
    let membership = membership(["a", "b", "c"]);
    let given = membership.admit(0, Kept::default()).unwrap().unwrap();
    assert_eq!(given.roster, None);
    for place in 0..3 {
        assert_eq!(
            (membership.unrecorded(), membership.completed()),
            (vec![], vec![])
        );
        let number = u8::try_from(place).unwrap();
        assert_eq!(membership.admit(place, kept(Some(number), None)), Ok(None));
    }
    let all = roster([(0, "a"), (1, "b"), (2, "c")]);
    let entry = |number, complete| Entry {
        id: id(number),
        roster: Some(all.clone()),
        complete,
    };
    let entries = |complete| [0, 1, 2].map(|number| (usize::from(number), entry(number, complete)));
    assert_eq!(membership.unrecorded(), entries(false));
    for place in 0..3 {
        assert!(!membership.is_complete());
        let number = u8::try_from(place).unwrap();
        assert_eq!(membership.admit(place, kept(Some(number), Some(&all))), Ok(None));
    }
    // What all keep is complete when one of them has told so: who has seen it looks first whether they have
    // leases.
    assert!(membership.is_recorded() && !membership.is_complete());
    assert_eq!(membership.unrecorded(), []);
    assert_eq!(membership.completed(), entries(true));
    assert_eq!(membership.admit(1, told(1, &all)), Ok(None));
    assert!(membership.is_complete());
    // Each is told once, also by whoever dials it.
    assert_eq!(
        membership.admit(0, kept(Some(0), Some(&all))),
        Ok(Some(entry(0, true)))
    );
    let untold: Vec<usize> = membership.completed().iter().map(|(place, _)| *place).collect();
    assert_eq!(untold, [0, 2]);
    assert_eq!(membership.roster(), Some(all));
}

#[test]
fn members_are_known_by_whatever_names() {
    let all = roster([(0, "a"), (1, "b"), (2, "c")]);
    let membership = membership(["z", "y", "x"]);
    for place in 0..3 {
        let number = u8::try_from(place).unwrap();
        assert_eq!(membership.admit(place, kept(Some(number), Some(&all))), Ok(None));
    }
    assert_eq!(membership.refusal(), None);
    assert!(membership.is_recorded());
}

/// In whatever order they are met: of two quorums one counts, and so no majority that the other does not
/// know.
#[test]
fn member_of_another_quorum_does_not_count() {
    let ours = roster([(0, "a"), (1, "b"), (2, "c")]);
    let theirs = roster([(2, "c"), (3, "d"), (4, "e")]);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let membership = membership(["a", "b", "d"]);
        let all = [(0, &ours), (1, &ours), (3, &theirs)];
        let mut counted = order.to_vec();
        counted.retain(|place| {
            let (number, roster): (u8, _) = all[*place];
            membership.admit(*place, kept(Some(number), Some(roster))).is_ok()
        });
        counted.sort_unstable();
        // Either those that are one quorum, or the other one alone.
        assert_eq!(counted, if order[0] == 2 { vec![2] } else { vec![0, 1] });
        assert!(membership.refusal().is_some());
    }
}

#[test]
fn server_that_forgot_is_the_member_of_its_host_and_no_other() {
    let all = roster([(0, "a"), (1, "b"), (2, "c")]);
    let one = membership(["a", "b", "c"]);
    assert_eq!(one.admit(0, told(0, &all)), Ok(None));
    let entry = one.admit(2, Kept::default()).unwrap().unwrap();
    assert_eq!((entry.id, entry.roster), (id(2), Some(all.clone())));
    // It was given an id by somebody who did not know yet.
    let entry = one.admit(1, kept(Some(9), None)).unwrap().unwrap();
    assert_eq!(entry.id, id(1));
    // At a host that nobody named when they were recorded.
    let other = membership(["a", "b", "d"]);
    assert_eq!(other.admit(0, kept(Some(0), Some(&all))), Ok(None));
    let error = other.admit(2, Kept::default()).unwrap_err();
    assert_eq!(error.fault, Fault::Invalid);
    assert!(
        error.message.contains("d is no member of the quorum a,b,c"),
        "{error}"
    );
    assert_eq!(other.refusal(), Some(error));
}

/// Met before anybody had told of the list.
#[test]
fn server_that_forgot_is_known_when_another_tells() {
    let all = roster([(0, "a"), (1, "b"), (2, "c")]);
    let one = membership(["a", "b", "c"]);
    assert_eq!(one.admit(2, kept(Some(9), None)), Ok(None));
    assert_eq!(one.admit(0, told(0, &all)), Ok(None));
    assert_eq!(one.admit(1, told(1, &all)), Ok(None));
    let entry = Entry {
        id: id(2),
        roster: Some(all.clone()),
        complete: true,
    };
    assert_eq!(one.unrecorded(), [(2, entry)]);
    let other = membership(["a", "b", "d"]);
    assert_eq!(other.admit(2, kept(Some(9), None)), Ok(None));
    let error = other.admit(0, kept(Some(0), Some(&all))).unwrap_err();
    assert_eq!(error.fault, Fault::Invalid);
}

#[test]
fn server_that_counts_twice_is_refused() {
    let one = membership(["a", "b", "c"]);
    assert_eq!(one.admit(0, kept(Some(0), None)), Ok(None));
    let error = one.admit(1, kept(Some(0), None)).unwrap_err();
    assert!(error.message.contains("a and b are one server"), "{error}");
    // The same server again, at its place.
    assert_eq!(one.admit(0, kept(Some(0), None)), Ok(None));
}

/// One tells it that has seen all of them, and the others need not be there.
#[test]
fn list_is_complete_if_one_member_tells_so() {
    let all = roster([(0, "a"), (1, "b"), (2, "c")]);
    let one = membership(["a", "b", "c"]);
    assert_eq!(one.admit(0, kept(Some(0), Some(&all))), Ok(None));
    assert!(!one.is_complete());
    assert!(!one.is_recorded());
    let told = told(1, &all);
    assert_eq!(one.admit(1, told.clone()), Ok(None));
    assert!(one.is_complete());
    // Not where nobody knows of which.
    let damaged = Kept {
        complete: true,
        ..kept(Some(1), None)
    };
    let two = membership(["a", "b", "c"]);
    assert_eq!(two.admit(1, damaged), Ok(None));
    assert!(!two.is_complete());
    // Not of another list.
    let other = membership(["a", "b", "d"]);
    assert_eq!(other.admit(2, kept(Some(9), None)), Ok(None));
    assert!(other.admit(1, told).is_err());
    assert!(!other.is_complete());
}

#[test]
fn list_of_another_length_is_another_quorum() {
    let five = Roster::of((0..5).map(|number| (id(number), format!("h{number}"))));
    let one = membership(["h0", "h1", "h2"]);
    assert!(one.admit(0, kept(Some(0), Some(&five))).is_err());
}

#[test]
fn who_records_them_anew_takes_every_server() {
    let theirs = roster([(2, "c"), (3, "d"), (4, "e")]);
    let anew = Membership::unchecked(vec!["a".to_owned()]);
    assert_eq!(anew.admit(0, kept(Some(3), Some(&theirs))), Ok(None));
}
