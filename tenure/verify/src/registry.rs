//! Stands in for the registry of the product: scenarios make their store themselves.

/// As in the product.
pub type SharedStore = std::sync::Arc<dyn tenure_core::LeaseStore>;
