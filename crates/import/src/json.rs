//! JSON as profilers really write it: tokens, texts, numbers.

mod bytes;
pub(crate) mod numbers;
pub(crate) mod scanner;
pub(crate) mod text;
pub(crate) mod texts;
