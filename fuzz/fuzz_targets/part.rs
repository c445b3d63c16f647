#![no_main]

// The Parquet library panics at some damage, and the reader turns that into an error: only a panic that leaves the
// target counts, not one that the hook of libFuzzer sees.
libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| {})),
    |bytes: &[u8]| stepscope_fuzz::part(bytes)
);
