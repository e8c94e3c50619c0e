//! From URLs to stores.
use tenure::Registry;
use tenure::contract::Fault;

#[tokio::test]
async fn an_unknown_scheme_lists_those_compiled_in() {
    let Err(error) = Registry::connect("zookeeper://localhost").await else {
        panic!("no such store")
    };
    assert_eq!(error.fault, Fault::Invalid);
    assert!(
        error.message.contains("\"zookeeper\"") && error.message.contains("sqlite"),
        "{error}"
    );
}

/// As in a program whose `Cargo.toml` names no feature: there it is SQLite alone.
#[tokio::test]
async fn a_scheme_that_was_not_compiled_in_names_its_feature() {
    for (url, feature) in [
        ("mongodb://h/app", "mongodb"),
        ("mongodb+srv://h/app", "mongodb"),
        ("postgres://h/app", "postgres"),
        ("postgresql://h/app", "postgres"),
        ("mariadb://h/app", "mysql"),
        ("rediss+sentinel://h?primary=p", "redis"),
        ("etcds://h", "etcd"),
        ("nats+tls://h", "nats"),
    ] {
        let Err(error) = Registry::empty().open(url).await else {
            panic!("no such store")
        };
        assert_eq!(error.fault, Fault::Invalid);
        assert!(
            error.message.ends_with(&format!("--features {feature}")),
            "{error}"
        );
    }
    let Err(unknown) = Registry::empty().open("zookeeper://h").await else {
        panic!("no such store")
    };
    assert!(!unknown.message.contains("feature"), "{unknown}");
}

/// Nothing is said of a scheme that stands for itself, so each opener sees that the rest is missing.
#[tokio::test]
async fn what_is_opened_to_elect_is_opened_to_be_cleaned_up_with_the_same_words() {
    let registry = Registry::compiled_in();
    for scheme in registry.schemes().chain(["zookeeper"]) {
        let url = format!("{scheme}:");
        let (Err(elects), Err(cleans)) = (
            Registry::connect(&url).await,
            Registry::connect_to_purge(&url).await,
        ) else {
            panic!("{url} is no place")
        };
        assert_eq!(elects, cleans, "{url}");
    }
}

/// As SQLAlchemy and others write URLs: the store is there, and nothing is to be built.
#[tokio::test]
async fn a_scheme_with_the_name_of_a_driver_is_told_the_one_without() {
    for (url, scheme) in [
        ("mysql+pymysql://h/app", "mysql"),
        ("postgresql+psycopg2://h/app", "postgresql"),
        ("redis+tls://h", "redis"),
    ] {
        let Err(error) = Registry::connect(url).await else {
            panic!("no such scheme")
        };
        assert_eq!(error.fault, Fault::Invalid);
        assert!(error.message.contains(&format!("write \"{scheme}:\"")), "{error}");
        assert!(!error.message.contains("--features"), "{error}");
    }
}

#[tokio::test]
async fn a_text_that_is_no_url_is_refused_with_an_example() {
    let Err(error) = Registry::connect("leases.db").await else {
        panic!("no URL")
    };
    assert!(error.message.contains("sqlite:/"), "{error}");
}

/// As a file of variables keeps what stands behind a value, and a secret the end of a line.
#[tokio::test]
async fn a_url_with_a_blank_at_an_end_is_refused_by_every_store() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}/leases.db", folder.path().display());
    for url in [
        &sqlite,
        "mongodb://h/app",
        "redis://h/0?prefix=jobs:",
        "postgres://h/app",
        "mysql://h/app",
        "etcd://h/tenure",
        "nats://h/app",
    ] {
        for blank in [" ", "\t", "\r", "\n", "\r\n", "\u{a0}", "\0"] {
            for url in [format!("{url}{blank}"), format!("{blank}{url}")] {
                let Err(error) = Registry::connect(&url).await else {
                    panic!("{url:?}")
                };
                let purge = Registry::connect_to_purge(&url).await;
                assert_eq!(
                    purge.err().map(|error| error.fault),
                    Some(Fault::Invalid),
                    "{url:?}"
                );
                assert_eq!(error.fault, Fault::Invalid, "{url:?}");
                assert!(
                    error.message.contains("begins or ends with a blank"),
                    "{url:?}: {error}"
                );
            }
        }
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    // A file of such a name is still reached.
    Registry::connect(&format!("{sqlite}%20")).await.unwrap();
    assert!(folder.path().join("leases.db ").exists());
}

#[tokio::test]
async fn no_message_shows_what_may_be_a_password() {
    for url in [
        "user pa$$word:5432",
        "redis://user:hunter2@host",
        "x y hunter2",
        "hunter2@host:4222",
        "hunter2:secret@host:4222",
    ] {
        let Err(error) = Registry::connect(url).await else {
            panic!("{url}")
        };
        assert!(
            !error.message.contains("hunter2") && !error.message.contains("pa$$word"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_store_of_ones_own_can_be_registered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leases.db");
    let mut registry = Registry::empty();
    registry.register("mine", move |_| {
        let file = file.clone();
        async move {
            let store: tenure::SharedStore = std::sync::Arc::new(tenure::sqlite::SqliteStore::open(file)?);
            Ok(store)
        }
    });
    assert_eq!(
        registry.open("mine:anything").await.unwrap().traits().kind,
        "sqlite"
    );
}
