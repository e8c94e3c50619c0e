use arbitrary::Unstructured;

/// An input read as a row of choices. It never fails: where the input ends, every choice is the first one.
pub(super) struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self(Unstructured::new(input))
    }

    /// Whether every byte has been used.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0.int_in_range(0..=limit - 1).unwrap_or(0)
    }

    /// True once in so many times.
    pub(super) fn once_in(&mut self, times: u8) -> bool {
        self.byte() % times == times - 1
    }

    pub(super) fn pick<'b, T>(&mut self, from: &'b [T]) -> &'b T {
        &from[self.below(from.len())]
    }

    /// Any number, small ones as likely as huge ones.
    pub(super) fn number(&mut self) -> u64 {
        let width = self.byte();
        let bytes = self.bytes(usize::from(width % 9));
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let number = u64::from_le_bytes(wide);
        match width / 9 % 5 {
            0 | 1 => number,
            2 => number.wrapping_neg(),
            // The edges of signed numbers.
            3 => (1_u64 << 63).wrapping_add(number),
            _ => (1_u64 << 63).wrapping_sub(1).wrapping_sub(number),
        }
    }

    /// As [`number`](Self::number), signed.
    pub(super) fn signed(&mut self) -> i64 {
        self.number().cast_signed()
    }

    /// At most so many bytes; fewer where the input ends.
    pub(super) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let count = count.min(self.0.len());
        self.0.bytes(count).unwrap_or(&[])
    }

    /// Any bytes: mostly a few, now and then up to 255 as written, and rarely those repeated to be long.
    pub(super) fn blob(&mut self) -> Vec<u8> {
        let length = match self.byte() {
            few @ 0..240 => few % 16,
            _ => self.byte(),
        };
        let bytes = self.bytes(length.into());
        if self.once_in(32) {
            bytes.repeat(1 + usize::from(self.byte()))
        } else {
            bytes.to_vec()
        }
    }

    /// Any text.
    pub(super) fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.blob()).into_owned()
    }

    /// A text that `valid` takes: what the input says if that will do, else `otherwise`.
    pub(super) fn text_or(&mut self, otherwise: &str, valid: impl Fn(&str) -> bool) -> String {
        let text = self.text();
        if valid(&text) { text } else { otherwise.to_owned() }
    }
}
