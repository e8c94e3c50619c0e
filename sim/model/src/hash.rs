use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A fast hash for the model's own small keys, the same in every run. Nobody hostile chooses them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fold(u64);

/// Builds [`Fold`]s.
pub(crate) type FoldState = BuildHasherDefault<Fold>;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes two numbers.
///
/// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014) over their combination: states differ in few bits,
/// and a weaker mix makes long runs in the table.
pub(crate) fn fold(left: u64, right: u64) -> u64 {
    let mut mixed = left ^ right.wrapping_mul(FACTOR).rotate_left(31);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = fold(self.0.wrapping_add(FACTOR), number);
    }
    fn write_usize(&mut self, number: usize) {
        self.write_u64(u64::try_from(number).unwrap_or(u64::MAX));
    }
}

/// Two numbers that are looked up together, hashed as one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pair(pub(crate) u32, pub(crate) u32);

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.0) | u64::from(self.1) << 32);
    }
}
