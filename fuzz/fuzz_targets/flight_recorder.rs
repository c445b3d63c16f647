#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stepscope_fuzz::flight_recorder(bytes));
