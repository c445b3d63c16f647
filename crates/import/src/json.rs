//! JSON as profilers really write it: tokens, texts, numbers.

pub(crate) mod bytes;
pub(crate) mod numbers;
pub(crate) mod scanner;
pub(crate) mod text;
pub(crate) mod texts;
