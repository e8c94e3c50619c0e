//! Command line of the test kit: installs the servers the tests need, and runs them by hand.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use tenure_testkit::fetch::{
    Apt, OtherPostgres, fetch, fetch_etcd, fetch_faketime, fetch_mysql, fetch_nats, fetch_nftables,
    fetch_older_nats, fetch_other_etcd, fetch_other_mariadb, fetch_other_postgres, fetch_other_redis,
    fetch_promtool, fetch_redis,
};
use tenure_testkit::{Error, ReplicaSet, Size, block_on, mongod_program};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["fetch"] => all(Apt::AsRoot),
        ["fetch", "--no-apt"] => all(Apt::Never),
        ["fetch", "mysql"] => fetch_mysql(),
        ["fetch", "newer-etcd"] => fetch_other_etcd(),
        ["fetch", "mariadb-11.8"] => fetch_other_mariadb(),
        ["fetch", "postgres-16"] => fetch_other_postgres(OtherPostgres::Sixteen, Apt::AsRoot),
        ["fetch", "postgres-18"] => fetch_other_postgres(OtherPostgres::Eighteen, Apt::AsRoot),
        ["fetch", "nats-2.11"] => fetch_older_nats(Apt::AsRoot),
        ["fetch", "promtool"] => fetch_promtool(),
        ["fetch", "redis-8"] => fetch_other_redis(),
        ["where"] => mongod_program(),
        ["run", "mongod"] => run(Size::One),
        ["run", "replica-set"] => run(Size::Three),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(program) => {
            println!("{}", program.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("testkit: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Installs every server; the path of the first is the answer.
fn all(apt: Apt) -> Result<PathBuf, Error> {
    let mongod = fetch(apt)?;
    fetch_redis(apt)?;
    fetch_etcd()?;
    fetch_nats(apt)?;
    fetch_faketime()?;
    fetch_nftables()?;
    Ok(mongod)
}

/// Runs a server for somebody to try things on, until this process is killed; then the kernel kills it too.
fn run(size: Size) -> Result<PathBuf, Error> {
    let set = block_on(ReplicaSet::start(size))?;
    for node in 0..set.size() {
        println!(
            "node {node}: pid {} at {}",
            set.pid(node).unwrap_or_default(),
            set.address(node)
        );
    }
    println!("{}", set.uri());
    loop {
        std::thread::park();
    }
}

const USAGE: &str = "\
usage: testkit fetch [--no-apt]   install mongod, redis, valkey, etcd and nats into target/servers; as root also what it needs, with apt-get
       testkit fetch mysql        unpack MySQL, too, and print its mysqld: with TESTKIT_MARIADB set to it, tests run it in MariaDB's place
       testkit fetch mariadb-11.8 the same with the MariaDB of Debian 13
       testkit fetch newer-etcd   unpack the etcd of Debian's development release, too: with TESTKIT_ETCD set to it, tests run it
       testkit fetch postgres-16  unpack PostgreSQL 16 and 18, too, and print the folder of that one: with TESTKIT_POSTGRES set to it,
       testkit fetch postgres-18  tests run it in place of the system's
       testkit fetch nats-2.11    unpack the last NATS of 2.11, too: with TESTKIT_NATS set to it, tests run it
       testkit fetch redis-8      unpack the Redis of Debian 13, too: with TESTKIT_REDIS set to it, tests run it
       testkit fetch promtool     unpack the program that tests the rules of alerts: promtool test rules deploy/alerts_test.yaml
       testkit where              print which mongod the tests use
       testkit run mongod         run a replica set of one node until killed, and print its address
       testkit run replica-set    the same with three nodes";
