#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (tenure_fuzz::targets::OBSERVED.judge)(bytes));
