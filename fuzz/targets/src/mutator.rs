use crate::INPUT_BYTES_MAX;
use fastrand::Rng;

/// Most changes that one mutation makes.
const CHANGES_MAX: usize = 6;

/// Longest run of bytes that one change inserts, copies or removes.
const RUN_BYTES_MAX: usize = 64;

/// Numbers at which programs stumble.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// A seeded maker of inputs: the same seed, corpus and dictionary give the same inputs, everywhere.
#[derive(Clone, Debug)]
pub struct Mutator {
    dice: Rng,
}

impl Mutator {
    /// A mutator that is a function of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            dice: Rng::with_seed(seed),
        }
    }

    /// One input of the corpus, changed a little; out of thin air where the corpus is empty, and now and
    /// then anyway.
    #[must_use]
    pub fn next(&mut self, corpus: &[&[u8]], dictionary: &[&str]) -> Vec<u8> {
        let mut input = match self.dice.choice(corpus) {
            Some(base) if self.dice.u8(..) >= 4 => base.to_vec(),
            _ => {
                let length = self.dice.usize(..=RUN_BYTES_MAX * 4);
                self.bytes(length)
            }
        };
        for _ in 0..self.dice.usize(1..=CHANGES_MAX) {
            self.change(&mut input, corpus, dictionary);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[&[u8]], dictionary: &[&str]) {
        match self.dice.u8(..10) {
            0 | 1 => {
                if let Some(at) = self.place_of_byte(input) {
                    input[at] ^= 1 << self.dice.u8(..8);
                }
            }
            2 => {
                if let Some(at) = self.place_of_byte(input) {
                    input[at] = self.dice.u8(..);
                }
            }
            3 => self.write_edge(input),
            4 => {
                let length = self.dice.usize(1..=8);
                let run = self.bytes(length);
                self.insert(input, &run);
            }
            5 => {
                let run = self.run_of(input);
                input.drain(run);
            }
            6 => {
                let copied = input[self.run_of(input)].to_vec();
                self.insert(input, &copied);
            }
            7 => {
                if let Some(other) = self.dice.choice(corpus) {
                    let copied = other[self.run_of(other)].to_vec();
                    self.insert(input, &copied);
                }
            }
            8 => {
                if let Some(other) = self.dice.choice(corpus) {
                    // The beginning of one and the end of another.
                    input.truncate(self.dice.usize(..=input.len()));
                    input.extend_from_slice(&other[self.dice.usize(..=other.len())..]);
                }
            }
            _ => {
                if let Some(word) = self.dice.choice(dictionary) {
                    self.insert(input, word.as_bytes());
                }
            }
        }
    }

    /// Writes a number at which programs stumble over one to eight bytes, in either byte order.
    fn write_edge(&mut self, input: &mut [u8]) {
        let Some(at) = self.place_of_byte(input) else {
            return;
        };
        let edge = EDGES[self.dice.usize(..EDGES.len())];
        let width = 1_usize << self.dice.u8(..4);
        let mut bytes = edge.to_le_bytes()[..width].to_vec();
        if self.dice.bool() {
            bytes.reverse();
        }
        for (target, byte) in input[at..].iter_mut().zip(bytes) {
            *target = byte;
        }
    }

    fn insert(&mut self, input: &mut Vec<u8>, run: &[u8]) {
        let at = self.dice.usize(..=input.len());
        input.splice(at..at, run.iter().copied());
    }

    fn run_of(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let from = self.dice.usize(..=input.len());
        let longest = (input.len() - from).min(RUN_BYTES_MAX);
        from..from + self.dice.usize(..=longest)
    }

    fn place_of_byte(&mut self, input: &[u8]) -> Option<usize> {
        (!input.is_empty()).then(|| self.dice.usize(..input.len()))
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.dice.u8(..)).take(length).collect()
    }
}
