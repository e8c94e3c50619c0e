//! What every message for a person keeps to.

/// Panics unless `message` is one line for a person: not empty, bounded, without control characters.
pub(super) fn assert_one_line(message: &str) {
    /// Longest message that still is a line, in bytes.
    const LINE_BYTES_MAX: usize = 16 * 1024;
    assert!(!message.is_empty(), "a message is empty");
    assert!(
        message.len() <= LINE_BYTES_MAX,
        "a message has {} bytes: {}",
        message.len(),
        message.chars().take(200).collect::<String>()
    );
    if let Some(character) = message.chars().find(|character| character.is_control()) {
        panic!("a message has the control character {character:?}: {message:?}");
    }
}
