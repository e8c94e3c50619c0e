//! What the versions of a cluster's members say of the sessions that they keep.

use tenure_core::Durability;

/// Before these, a leader that stalls ends leases that its successor extends (etcd-io/etcd#15247).
const MENDED: [Version; 2] = [Version(3, 4, 31), Version(3, 5, 13)];

/// Before these, a server that is full makes no transaction, also none that only removes.
const REMOVES_WHEN_FULL: [Version; 2] = [Version(3, 4, 20), Version(3, 5, 7)];

/// The first whose protocol is spoken here.
const OLDEST: Version = Version(3, 4, 0);

/// Of one member: major, minor, patch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Version(u64, u64, u64);

/// What a version is good for, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Worth {
    /// Sessions end by the clock of the leader alone.
    Sound,
    /// A deposed leader can end sessions that its successor has extended.
    EndsEarly,
    /// Older than what is spoken here.
    TooOld,
}

impl Version {
    /// As a member tells it: `3.5.13`, also with more behind it. What is no number counts as 0, which is too
    /// old.
    pub(crate) fn read(told: &str) -> Self {
        let mut parts = told
            .split(['.', '-', '+'])
            .map(|part| part.parse::<u64>().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        Self(next(), next(), next())
    }

    pub(crate) fn worth(self) -> Worth {
        match self.is_before(&MENDED) {
            _ if self < OLDEST => Worth::TooOld,
            true => Worth::EndsEarly,
            false => Worth::Sound,
        }
    }

    /// Whether a lease can be given back to it while it is full.
    pub(crate) fn removes_when_full(self) -> bool {
        !self.is_before(&REMOVES_WHEN_FULL)
    }

    /// Whether it lacks what its line has since one of these.
    fn is_before(self, mended: &[Self]) -> bool {
        mended
            .iter()
            .any(|mended| (mended.0, mended.1) == (self.0, self.1) && self < *mended)
    }
}

/// As sound as the least sound member: each may be the leader that stalls. `None` stands for one that told
/// nothing.
pub(crate) fn durability(members: &[Option<Version>]) -> Durability {
    let worth = |member: &Option<Version>| member.map(Version::worth);
    if members
        .iter()
        .any(|member| matches!(worth(member), Some(Worth::EndsEarly | Worth::TooOld)))
    {
        return Durability::FenceOnly(
            "a leader that stalls can end leases that its successor has extended (etcd-io/etcd#15247): upgrade every member \
             to 3.4.31, 3.5.13 or later",
        );
    }
    if members.iter().any(Option::is_none) {
        return Durability::FenceOnly(
            "a member of the cluster did not tell its version: it is away, or tells it to the role root alone \
             (etcd-io/etcd#21663)",
        );
    }
    Durability::Safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_whose_deposed_leaders_end_no_session_are_sound() {
        for (told, worth) in [
            ("3.3.27", Worth::TooOld),
            ("3.4.0", Worth::EndsEarly),
            ("3.4.23", Worth::EndsEarly),
            ("3.4.30", Worth::EndsEarly),
            ("3.4.31", Worth::Sound),
            ("3.5.0", Worth::EndsEarly),
            ("3.5.12", Worth::EndsEarly),
            ("3.5.13", Worth::Sound),
            ("3.5.16+git", Worth::Sound),
            ("3.6.0-rc.1", Worth::Sound),
            ("4.0.0", Worth::Sound),
            ("", Worth::TooOld),
            ("green", Worth::TooOld),
        ] {
            assert_eq!(Version::read(told).worth(), worth, "{told}");
        }
    }

    #[test]
    fn early_versions_of_each_line_take_nothing_back_when_they_are_full() {
        for (told, removes) in [
            ("3.4.19", false),
            ("3.4.20", true),
            ("3.5.6", false),
            ("3.5.7", true),
            ("3.6.0", true),
        ] {
            assert_eq!(Version::read(told).removes_when_full(), removes, "{told}");
        }
    }

    #[test]
    fn cluster_is_as_sound_as_its_least_sound_member() {
        let (sound, weak) = (Some(Version(3, 5, 16)), Some(Version(3, 5, 12)));
        assert_eq!(durability(&[sound, sound, sound]), Durability::Safe);
        for members in [[sound, weak, sound], [sound, weak, None]] {
            let told = durability(&members);
            assert!(
                matches!(told, Durability::FenceOnly(why) if why.contains("#15247")),
                "{told:?}"
            );
        }
        let told = durability(&[sound, sound, None]);
        assert!(
            matches!(told, Durability::FenceOnly(why) if why.contains("did not tell")),
            "{told:?}"
        );
    }
}
