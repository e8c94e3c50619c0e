/// A crate in which wrong lines are planted, one at a time, and whose tests must notice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Part {
    /// What it is called; unique.
    pub name: &'static str,
    /// Its folder, from the root of the workspace.
    pub folder: &'static str,
    /// Its package.
    pub package: &'static str,
    /// What cargo is told to build beside the program `tests`: with which features, and with `--lib` its unit
    /// tests, too.
    ///
    /// Parts of the same arguments are built by one command, always all of them: what is built of one alone
    /// has other features, and would be built anew.
    pub arguments: &'static [&'static str],
}

/// A store, by its name. With its unit tests: what an address is judged by that no name of this machine leads
/// to is held there.
macro_rules! store {
    ($name:literal) => {
        &Part {
            name: $name,
            folder: concat!("stores/", $name),
            package: concat!("tenure-", $name),
            arguments: &["--all-features", "--lib"],
        }
    };
}

pub(super) const ETCD: &Part = store!("etcd");
pub(super) const MONGODB: &Part = store!("mongodb");
pub(super) const MYSQL: &Part = store!("mysql");
pub(super) const NATS: &Part = store!("nats");
pub(super) const POSTGRES: &Part = store!("postgres");
pub(super) const REDIS: &Part = store!("redis");
pub(super) const SQLITE: &Part = store!("sqlite");

/// The fence in a process.
pub(super) const WATERMARK: &Part = &Part {
    name: "watermark",
    folder: "fences/watermark",
    package: "tenure-watermark",
    arguments: &["--all-features", "--lib"],
};

/// The fence over HTTP.
pub(super) const HTTP: &Part = &Part {
    name: "http",
    folder: "fences/http",
    package: "tenure-http",
    arguments: &[],
};

/// The library: belief, elections, locks. Without the stores that it would only pass on.
pub(super) const DRIVER: &Part = &Part {
    name: "driver",
    folder: "tenure",
    package: "tenure",
    arguments: &["--features", "metrics", "--lib"],
};

/// The core, of which the simulator asks nothing where only the number of requests differs.
pub(super) const CORE: &Part = &Part {
    name: "core",
    folder: "core",
    package: "tenure-core",
    arguments: &["--lib"],
};
