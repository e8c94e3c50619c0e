//! The core: how many releases are under way, and together.

use super::{Wrong, row};

const RELEASES: &[&str] = &["releasing::"];

pub(super) const ROWS: &[Wrong] = &[
    row(
        "as many releases are under way as are due",
        "L4",
        "src/engine/requests.rs",
        &[[
            "const RELEASES_IN_FLIGHT_MAX: usize = 12;",
            "const RELEASES_IN_FLIGHT_MAX: usize = 12_000;",
        ]],
        RELEASES,
    ),
    row(
        "the releases under way are of as many leases as are due",
        "L4",
        "src/engine/requests.rs",
        &[[
            "const RELEASING_MAX: usize = 250;",
            "const RELEASING_MAX: usize = 250_000;",
        ]],
        RELEASES,
    ),
    row(
        "releases that took too long together are sent again as they were",
        "L4",
        "src/engine/releasing.rs",
        &[[
            "self.releases_together.min(count / 2).max(1);",
            "self.releases_together.min(count).max(1);",
        ]],
        RELEASES,
    ),
    row(
        "after releases that took too long each goes alone for ever",
        "L4",
        "src/engine/releasing.rs",
        &[[
            "self.releases_together = twice.min(self.batch_max.get());",
            "self.releases_together = self.releases_together.min(twice);",
        ]],
        RELEASES,
    ),
    row(
        "releases that have failed take others with them",
        "L4",
        "src/engine/releasing.rs",
        &[[
            ".partition(|due| due.has_failed == first_has_failed);",
            ".partition(|due| due.has_failed == first_has_failed || first_has_failed);",
        ]],
        RELEASES,
    ),
    row(
        "what has no place when its lease has expired waits on",
        "L4",
        "src/engine/releasing.rs",
        &[[
            ".find(|(_, give_up_at, _)| *give_up_at <= now)",
            ".find(|(_, give_up_at, _)| now.after(Duration::from_secs(3600)) < *give_up_at)",
        ]],
        RELEASES,
    ),
    row(
        "a record that cannot be read is asked to be given back without end",
        "G32",
        "src/engine/departure.rs",
        &[[
            "leaving.give_up_at && !error.fault.ends_a_release() => {",
            "leaving.give_up_at => {",
        ]],
        RELEASES,
    ),
];
