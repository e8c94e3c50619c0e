//! Planted bugs, each of which the simulator or the model must catch.
