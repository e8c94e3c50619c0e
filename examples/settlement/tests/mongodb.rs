//! The drill on MongoDB (being written).
