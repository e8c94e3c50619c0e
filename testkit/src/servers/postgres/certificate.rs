//! A certificate for a server on loopback, and the root that signs it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;

/// Writes `root.crt`, `server.crt` and `server.key` into `folder`, for `localhost`, with the `openssl` of the
/// system.
///
/// # Errors
/// [`Error::Fetch`] with what to install.
pub(in crate::servers) fn write(folder: &Path) -> Result<(), Error> {
    let names = folder.join("names");
    fs::write(&names, "subjectAltName=DNS:localhost\n").map_err(Error::system("writing a certificate"))?;
    let names = names.display().to_string();
    let root = "req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=root -keyout root.key -out root.crt";
    let request = "req -new -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr";
    let sign = format!(
        "x509 -req -in server.csr -CA root.crt -CAkey root.key -CAcreateserial -days 30 -extfile {names} -out server.crt"
    );
    for arguments in [root, request, &sign] {
        let mut openssl = Command::new("openssl");
        openssl.args(arguments.split(' ')).current_dir(folder);
        openssl
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let made = openssl.status().is_ok_and(|status| status.success());
        if !made {
            let message =
                "no certificate could be made; install openssl (`apt-get install -y openssl` as root)";
            return Err(Error::Fetch(message.to_owned()));
        }
    }
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.join("server.key"), private).map_err(Error::system("writing a key"))
}
