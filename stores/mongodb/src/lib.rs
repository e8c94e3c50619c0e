//! tenure-mongodb
