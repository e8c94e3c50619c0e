//! The real engine over model stores in virtual time.
