//! tenure-conformance
