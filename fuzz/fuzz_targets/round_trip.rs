#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stepscope_fuzz::round_trip(bytes));
