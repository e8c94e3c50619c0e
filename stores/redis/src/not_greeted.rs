//! What is said where nobody answers the first word of a connection.

use crate::connect::{CONNECTION_TIME_MAX, Target};
use crate::url::{Host, Security};
use redis::RedisError;
use tenure_core::{Fault, StoreError};

impl Target {
    /// What is said of a first word that met with an end: a server that waits for a TLS handshake closes upon
    /// a command.
    pub(crate) fn not_greeted(&self, error: &RedisError, host: &Host) -> StoreError {
        let failed = self.failed(error, host);
        match self.url.security {
            Security::Plain if error.is_connection_dropped() && !error.is_connection_refusal() => {
                StoreError {
                    message: format!("{}; if it speaks TLS at this port, say rediss:", failed.message),
                    ..failed
                }
            }
            Security::Plain | Security::Tls => failed,
        }
    }

    /// What is said of a first word that met with silence: a server that waits for a command in plain text
    /// does not answer a handshake.
    pub(crate) fn nobody_greets(&self, host: &Host) -> StoreError {
        let silent = silent(host);
        StoreError {
            message: format!("{}{}", silent.message, self.of_silence()),
            ..silent
        }
    }

    /// What to look at where nobody answers, beside the network.
    pub(crate) fn of_silence(&self) -> &'static str {
        match self.url.security {
            Security::Plain => "",
            Security::Tls => "; if it does not speak TLS at this port, say redis:",
        }
    }
}

pub(crate) fn silent(host: &Host) -> StoreError {
    StoreError::not_applied(
        Fault::Unreachable,
        format!(
            "no Redis server answered at {host} within {CONNECTION_TIME_MAX:?}; check host, port and network"
        ),
    )
}
