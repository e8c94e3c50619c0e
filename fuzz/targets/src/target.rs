/// Longest input that the finder makes, in bytes. Long enough for two hundred steps of an engine.
pub const INPUT_BYTES_MAX: usize = 4096;

/// Something that is fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of the libFuzzer target and of the corpus' folder, too.
    pub name: &'static str,
    /// What it promises, in one line.
    pub promise: &'static str,
    /// Judges one input. Panics, with what was found, if a promise is broken.
    pub judge: fn(&[u8]),
    /// Words that inputs of this target are made of.
    pub dictionary: &'static [&'static str],
}
