//! The password that a URL does not have, from where libpq takes it: `PGPASSWORD`, then the password file.
//!
//! It is looked for at each connection, so that one that was changed is met.

use std::env::{home_dir, var_os};
use std::fmt;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tenure_remote::begin_of_file;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Beyond this a password file is not read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Sockets that a password file knows as `localhost`: libpq's own place for them, and the distributions'.
const SOCKETS_OF_LOCALHOST: [&str; 3] = ["/tmp", "/run/postgresql", "/var/run/postgresql"];

/// Where a password came from, or why there is none. It holds none itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The URL.
    Url,
    /// `PGPASSWORD`.
    Variable,
    /// This file.
    File(PathBuf),
    /// There is none: no file, or it has no line for this host, port, database and user, who is this.
    Nowhere(String),
    /// There may be one in this file, which is not read, for this.
    Ignored(PathBuf, &'static str),
}

impl fmt::Display for Origin {
    /// For whoever is refused.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |path: &Path| path.display().to_string().escape_debug().to_string();
        match self {
            Self::Url => f.write_str("the password is that of the URL"),
            Self::Variable => f.write_str("the password is that of PGPASSWORD"),
            Self::File(path) => write!(f, "the password is from {}", shown(path)),
            Self::Nowhere(user) => write!(
                f,
                "there is none in the URL, in PGPASSWORD, or for user {user:?} at this host, port and database in the password file"
            ),
            Self::Ignored(path, why) => write!(f, "the password file {} is ignored: {why}", shown(path)),
        }
    }
}

/// Puts the password into the options of one host, if the URL has none.
pub(crate) fn completed(config: &Config) -> (Config, Origin) {
    let mut config = config.clone();
    if config.get_password().is_some_and(|password| !password.is_empty()) {
        return (config, Origin::Url);
    }
    let variable = |name| var_os(name).filter(|value| !value.is_empty());
    if let Some(password) = variable("PGPASSWORD") {
        config.password(password.into_vec());
        return (config, Origin::Variable);
    }
    let nowhere = Origin::Nowhere(config.get_user().unwrap_or_default().to_owned());
    let named = variable("PGPASSFILE").map(PathBuf::from);
    let Some(path) = named.or_else(|| Some(home_dir()?.join(".pgpass"))) else {
        return (config, nowhere);
    };
    let origin = match in_file(&path, &config) {
        Ok(Some(password)) => {
            config.password(password);
            Origin::File(path)
        }
        Ok(None) => nowhere,
        Err(why) => Origin::Ignored(path, why),
    };
    (config, origin)
}

/// The password of the first line of this file that is for this host, if there is a file.
///
/// # Errors
/// Why it is not read.
fn in_file(path: &Path, config: &Config) -> Result<Option<Vec<u8>>, &'static str> {
    let Ok(metadata) = path.metadata() else {
        return Ok(None);
    };
    is_of_use(&metadata)?;
    let text = begin_of_file(path, FILE_BYTES_MAX).map_err(|_error| "it cannot be read")?;
    Ok(password_in(&text, &Login::of(config)))
}

fn is_of_use(metadata: &Metadata) -> Result<(), &'static str> {
    if !metadata.is_file() {
        return Err("it is no plain file");
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err("its group or others have access to it; chmod 0600");
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err("it is larger than 1 MiB");
    }
    Ok(())
}

/// What a line is looked for by.
struct Login {
    hosts: Vec<Vec<u8>>,
    port: String,
    database: String,
    user: String,
}

impl Login {
    fn of(config: &Config) -> Self {
        let hosts = match config.get_hosts().first() {
            Some(Host::Tcp(name)) => vec![name.clone().into_bytes()],
            Some(Host::Unix(path)) if SOCKETS_OF_LOCALHOST.iter().any(|known| path == Path::new(known)) => {
                vec![b"localhost".to_vec(), path.as_os_str().as_bytes().to_vec()]
            }
            Some(Host::Unix(path)) => vec![path.as_os_str().as_bytes().to_vec()],
            None => Vec::new(),
        };
        let user = config.get_user().unwrap_or_default().to_owned();
        Self {
            hosts,
            port: config.get_ports().first().copied().unwrap_or(5432).to_string(),
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
        }
    }

    fn is_for(&self, fields: &[Field]) -> bool {
        let [host, port, database, user, ..] = fields else {
            return false;
        };
        self.hosts.iter().any(|name| host.is_for(name))
            && port.is_for(self.port.as_bytes())
            && database.is_for(self.database.as_bytes())
            && user.is_for(self.user.as_bytes())
    }
}

/// One of the fields of a line, `host:port:database:user:password`.
#[derive(Default)]
struct Field {
    text: Vec<u8>,
    /// Whether a backslash was in it: `\*` is no wildcard.
    is_escaped: bool,
}

impl Field {
    fn is_for(&self, value: &[u8]) -> bool {
        self.text == value || (self.text == b"*" && !self.is_escaped)
    }
}

/// The password of the first line that is for this login. An empty one is none.
fn password_in(file: &[u8], login: &Login) -> Option<Vec<u8>> {
    let lines = file.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.starts_with(b"#"));
    let mut fields = lines.map(|line| fields_of(line.strip_suffix(b"\r").unwrap_or(line)));
    let of_login = fields.find(|fields| login.is_for(fields))?;
    let password = of_login.into_iter().nth(4)?.text;
    (!password.is_empty()).then_some(password)
}

/// A backslash takes the byte behind it as it is.
fn fields_of(line: &[u8]) -> Vec<Field> {
    let (mut fields, mut bytes) = (vec![Field::default()], line.iter().copied());
    while let Some(byte) = bytes.next() {
        let field = fields.last_mut().expect("there is one from the beginning");
        match byte {
            b':' => fields.push(Field::default()),
            b'\\' => {
                field.is_escaped = true;
                field.text.extend(bytes.next());
            }
            _ => field.text.push(byte),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::{Login, password_in};
    use tokio_postgres::Config;

    fn found(file: &str, url: &str) -> Option<String> {
        let config: Config = url.parse().expect("a URL");
        let password = password_in(file.as_bytes(), &Login::of(&config))?;
        Some(String::from_utf8(password).expect("UTF-8"))
    }

    #[test]
    fn first_line_of_a_password_file_that_is_for_the_login_counts() {
        let file = "# db:5432:bank:app:comment\n\ndb:5432:bank:other:not mine\ndb:5433:bank:app:second\r\n*:*:bank:app:any host\n\
                    db:5432:bank:app:too late\n*:*:*:last:any";
        for (url, password) in [
            ("postgres://app@db/bank", Some("any host")),
            ("postgres://app@db:5433/bank", Some("second")),
            ("postgres://app@elsewhere:1/bank", Some("any host")),
            ("postgres://app@db/ledger", None),
            ("postgres://last@db/ledger", Some("any")),
            ("postgres://nobody@db/bank", None),
        ] {
            assert_eq!(found(file, url).as_deref(), password, "{url}");
        }
    }

    #[test]
    fn database_that_is_not_named_is_the_users_in_a_password_file() {
        assert_eq!(
            found("db:5432:app:app:x", "postgres://app@db").as_deref(),
            Some("x")
        );
    }

    #[test]
    fn backslash_in_a_password_file_takes_what_follows_as_it_is() {
        let file = r"\*:5432:bank:app:a star is a name here
fe80\:\:1:5432:ba\\nk:a\:pp:p\:a\\ss:behind it";
        let url = "postgres://a%3App@[fe80::1]/ba%5Cnk";
        assert_eq!(found(file, url).as_deref(), Some(r"p:a\ss"));
        assert_eq!(found(file, "postgres://app@db/bank"), None);
    }

    #[test]
    fn line_of_a_password_file_that_is_cut_off_or_empty_gives_no_password() {
        for file in [
            "",
            "db",
            "db:5432:bank:app",
            "db:5432:bank:app:",
            "db:5432:bank:app:\\",
            ":::::",
        ] {
            assert_eq!(found(file, "postgres://app@db/bank"), None, "{file}");
        }
    }

    #[test]
    fn socket_where_libpq_looks_for_it_is_localhost_in_a_password_file() {
        for (host, is_localhost) in [("%2Frun%2Fpostgresql", true), ("%2Fsrv", false)] {
            let url = format!("postgres://app@{host}/bank");
            assert_eq!(
                found("localhost:5432:bank:app:x", &url).is_some(),
                is_localhost,
                "{host}"
            );
        }
        assert!(found("/srv:5432:bank:app:x", "postgres://app@%2Fsrv/bank").is_some());
    }
}
