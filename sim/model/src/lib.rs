//! Every reachable state of the real engine, breadth first.
