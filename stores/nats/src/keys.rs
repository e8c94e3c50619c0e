//! Which subjects the records of one bucket have.

use tenure_core::{LeaseName, ResourceName};

/// What the keys of leases begin with.
const LEASES: &str = "lease";
/// What the keys of a fence's marks begin with.
const MARKS: &str = "tenure-fence";
/// What the keys of counts of refusals begin with.
const REFUSALS: &str = "tenure-refusals";
/// What the keys begin with by which reads behind a fence are confirmed.
const READS: &str = "tenure-reads";

/// The subjects of one bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Keys {
    bucket: String,
}

impl Keys {
    /// `bucket` is a valid name of a bucket.
    pub(crate) fn new(bucket: &str) -> Self {
        Self {
            bucket: bucket.to_owned(),
        }
    }

    /// The bucket's name.
    pub(crate) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The stream that the bucket is.
    pub(crate) fn stream(&self) -> String {
        format!("KV_{}", self.bucket)
    }

    /// Every subject of the bucket.
    pub(crate) fn all(&self) -> String {
        format!("$KV.{}.>", self.bucket)
    }

    /// The subject of a key.
    pub(crate) fn subject(&self, key: &str) -> String {
        format!("$KV.{}.{key}", self.bucket)
    }

    /// The subjects of all leases.
    pub(crate) fn leases(&self) -> String {
        self.subject(&format!("{LEASES}.>"))
    }

    /// The subject of a lease.
    pub(crate) fn lease(&self, name: &LeaseName) -> String {
        self.subject(&format!("{LEASES}.{}", escaped(name.as_str())))
    }

    /// The key of a subject, as `nats kv get` takes it.
    pub(crate) fn key<'a>(&self, subject: &'a str) -> &'a str {
        let rest = subject
            .strip_prefix("$KV.")
            .and_then(|rest| rest.strip_prefix(self.bucket.as_str()));
        rest.and_then(|rest| rest.strip_prefix('.')).unwrap_or(subject)
    }

    /// The lease of a subject; `None` where no lease has it.
    pub(crate) fn name(&self, subject: &str) -> Option<LeaseName> {
        LeaseName::new(self.named(LEASES, subject)?).ok()
    }

    /// The subjects of all marks.
    pub(crate) fn marks(&self) -> String {
        self.subject(&format!("{MARKS}.>"))
    }

    /// The subject of a resource's mark.
    pub(crate) fn mark(&self, resource: &ResourceName) -> String {
        self.subject(&format!("{MARKS}.{}", escaped(resource.as_str())))
    }

    /// The resource of a mark's subject; `None` where no resource has it.
    pub(crate) fn resource(&self, subject: &str) -> Option<ResourceName> {
        ResourceName::new(self.named(MARKS, subject)?).ok()
    }

    /// Where refusals of a resource are counted.
    pub(crate) fn refusals(&self, resource: &ResourceName) -> String {
        self.subject(&format!("{REFUSALS}.{}", escaped(resource.as_str())))
    }

    /// What a read behind the mark of a resource is confirmed by.
    pub(crate) fn reads(&self, resource: &ResourceName) -> String {
        self.subject(&format!("{READS}.{}", escaped(resource.as_str())))
    }

    fn named(&self, kind: &str, subject: &str) -> Option<String> {
        unescaped(self.key(subject).strip_prefix(kind)?.strip_prefix('.')?)
    }

    /// Whether a key is one that this crate keeps for itself.
    pub(crate) fn is_reserved(key: &str) -> bool {
        let first = key.split('.').next().unwrap_or_default();
        [LEASES, MARKS, REFUSALS, READS].contains(&first)
    }
}

/// A name as one part of a key: letters, digits, `-`, `_` and `/` as they are, every other byte as `=` and
/// two digits.
pub(crate) fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'-' | b'_' | b'/' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => escaped.push(char::from(byte)),
            _ => {
                escaped.push('=');
                escaped.push(char::from(DIGITS[usize::from(byte >> 4)]));
                escaped.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    escaped
}

/// The name that is escaped to exactly this; `None` where none is, so that no two keys are one name.
pub(crate) fn unescaped(escaped_name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped_name.len());
    let mut rest = escaped_name.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'=' => {
                let mut digit = || char::from(rest.next().unwrap_or(b'!')).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            _ => bytes.push(byte),
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    (escaped(&name) == escaped_name).then_some(name)
}

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use super::{Keys, escaped, unescaped};

    #[test]
    fn every_name_has_one_key_and_every_key_one_name() {
        for (name, key) in [
            ("nightly", "nightly"),
            ("orders/7", "orders/7"),
            ("a.b", "a=2Eb"),
            ("a=2Eb", "a=3D2Eb"),
            ("grün *>", "gr=C3=BCn=20=2A=3E"),
        ] {
            assert_eq!(escaped(name), key);
            assert_eq!(unescaped(key).as_deref(), Some(name));
        }
        for foreign in ["a.b", "a=2eb", "a=61", "a=", "a=2", "a=C3", "a b"] {
            assert_eq!(unescaped(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn subjects_lead_back_to_their_lease() {
        let keys = Keys::new("app");
        let name = "a.b".parse().unwrap();
        assert_eq!(keys.lease(&name), "$KV.app.lease.a=2Eb");
        assert_eq!(keys.name("$KV.app.lease.a=2Eb"), Some(name));
        for foreign in [
            "$KV.app.leasex",
            "$KV.app.other.a",
            "$KV.apple.lease.a",
            "$KV.app.lease.a.b",
        ] {
            assert_eq!(keys.name(foreign), None, "{foreign}");
        }
    }
}
