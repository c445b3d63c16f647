//! What an op was called with: encoded while it begins, written once for all ops that are called alike.
//!
//! In memory a *signature* is a list of words, which is fast to make, to hash and to compare; in a capture each word is
//! a number of variable length (LEB128), which is small. Every input begins with a head:
//!
//! ```text
//! bit   0      4              5       12
//!       │ kind │ has strides  │ dtype │ count …
//! ```
//!
//! What follows depends on the kind: a tensor's `count` sizes and then as many strides, the `count` items of a list, a
//! number's value, the bytes of a text eight to a word.

mod text;

pub use text::Inputs;

/// Signatures beyond this many words are not recorded.
const MAX_WORDS: usize = 1 << 17;
const STRIDES_BIT: u64 = 1 << 4;
const DTYPE_SHIFT: u32 = 5;
const DTYPES: u64 = 1 << 7;
const COUNT_SHIFT: u32 = 12;

/// What an input is: the lowest bits of its head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
enum Kind {
    /// Anything that is shown as nothing: none, an undefined tensor, a device …
    Other = 0,
    Tensor = 1,
    TensorList = 2,
    ScalarList = 3,
    Int = 4,
    Double = 5,
    /// The count is 0 or 1.
    Bool = 6,
    Complex = 7,
    /// A keyword's name of `count` bytes; its value follows.
    Keyword = 8,
    Text = 9,
    TextList = 10,
}

const KINDS: [Kind; 11] = [
    Kind::Other,
    Kind::Tensor,
    Kind::TensorList,
    Kind::ScalarList,
    Kind::Int,
    Kind::Double,
    Kind::Bool,
    Kind::Complex,
    Kind::Keyword,
    Kind::Text,
    Kind::TextList,
];

/// The inputs of an op while they are put together; used again for every op of a thread.
#[derive(Clone, Default, Debug)]
pub struct Signature {
    words: Vec<u64>,
}

impl Signature {
    /// With room for what ops usually have.
    pub fn with_room() -> Self {
        Self { words: Vec::with_capacity(4096) }
    }

    /// Forgets everything.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// The words; empty for an op without inputs.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// True when there was more than is recorded of one op.
    #[inline(always)]
    pub fn is_too_long(&self) -> bool {
        self.words.len() > MAX_WORDS
    }

    #[inline(always)]
    fn head(&mut self, kind: Kind, count: u64) {
        self.words.push(kind as u64 | count << COUNT_SHIFT);
    }

    /// An input that is shown as nothing.
    #[inline(always)]
    pub fn other(&mut self) {
        self.head(Kind::Other, 0);
    }

    /// A tensor; one without strides is not strided. There are as many strides as sizes.
    #[inline(always)]
    pub fn tensor(&mut self, dtype: u16, sizes: &[i64], strides: Option<&[i64]>) {
        if self.is_too_long() {
            return;
        }
        let strides = strides.filter(|strides| strides.len() == sizes.len());
        let flag = if strides.is_some() { STRIDES_BIT } else { 0 };
        let dtype = u64::from(dtype) & (DTYPES - 1);
        self.words.push(Kind::Tensor as u64 | flag | dtype << DTYPE_SHIFT | (sizes.len() as u64) << COUNT_SHIFT);
        self.words.extend(sizes.iter().map(|size| *size as u64));
        self.words.extend(strides.unwrap_or_default().iter().map(|stride| *stride as u64));
    }

    /// A list of tensors; `count` tensors or others follow.
    #[inline(always)]
    pub fn tensor_list(&mut self, count: usize) {
        self.head(Kind::TensorList, count as u64);
    }

    /// A list of scalars; `count` of them follow.
    #[inline(always)]
    pub fn scalar_list(&mut self, count: usize) {
        self.head(Kind::ScalarList, count as u64);
    }

    /// An integer.
    #[inline(always)]
    pub fn int(&mut self, value: i64) {
        self.head(Kind::Int, 0);
        // So that small numbers are small whatever their sign.
        self.words.push((value << 1 ^ value >> 63) as u64);
    }

    /// A number with a fraction.
    #[inline(always)]
    pub fn double(&mut self, value: f64) {
        self.head(Kind::Double, 0);
        self.words.push(value.to_bits());
    }

    /// A truth value.
    #[inline(always)]
    pub fn bool(&mut self, value: bool) {
        self.head(Kind::Bool, u64::from(value));
    }

    /// A complex number.
    #[inline(always)]
    pub fn complex(&mut self, real: f64, imaginary: f64) {
        self.head(Kind::Complex, 0);
        self.words.extend([real.to_bits(), imaginary.to_bits()]);
    }

    /// The name of a keyword; its value is what is put in next.
    pub fn keyword(&mut self, name: &[u8]) {
        self.bytes(Kind::Keyword, name);
    }

    /// A text.
    pub fn text(&mut self, text: &[u8]) {
        self.bytes(Kind::Text, text);
    }

    /// A list of texts; `count` of them follow.
    pub fn text_list(&mut self, count: usize) {
        self.head(Kind::TextList, count as u64);
    }

    fn bytes(&mut self, kind: Kind, bytes: &[u8]) {
        if self.is_too_long() {
            return;
        }
        self.head(kind, bytes.len() as u64);
        let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.words.extend(bytes.chunks(8).map(word));
    }
}

/// The bytes that stand for `words` in a capture.
pub fn pack(words: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(words.len() * 2);
    for word in words {
        let mut left = *word;
        while left >= 0x80 {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
    }
    bytes
}

/// The words that `bytes` stand for; `None` when they end amid one, or it has no room in a word.
fn unpack(bytes: &[u8]) -> Option<Vec<u64>> {
    let (mut words, mut word, mut shift) = (Vec::with_capacity(bytes.len()), 0_u64, 0);
    for byte in bytes {
        let bits = u64::from(byte & 0x7f);
        let placed = bits.checked_shl(shift).filter(|placed| placed >> shift == bits)?;
        word |= placed;
        shift += 7;
        if byte & 0x80 == 0 {
            words.push(word);
            (word, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(words)
}

/// One input as it is read back.
#[derive(Clone, PartialEq, Debug)]
enum Input {
    Other,
    Tensor { dtype: u8, sizes: Vec<i64>, strides: Option<Vec<i64>> },
    TensorList(Vec<Input>),
    ScalarList(Vec<Input>),
    Int(i64),
    Double(f64),
    Bool(bool),
    Complex(f64, f64),
    Keyword(String),
    Text(String),
    TextList(Vec<Input>),
}

/// Reads inputs one after the other; whatever is not complete gives `None`.
struct Reader<'a> {
    words: std::slice::Iter<'a, u64>,
}

impl Reader<'_> {
    fn all(words: &[u64]) -> Option<Vec<Input>> {
        let (mut reader, mut inputs) = (Reader { words: words.iter() }, Vec::new());
        while !reader.words.as_slice().is_empty() {
            inputs.push(reader.input()?);
        }
        Some(inputs)
    }

    fn input(&mut self) -> Option<Input> {
        let (kind, head) = self.head()?;
        match kind {
            Kind::TensorList => Some(Input::TensorList(self.items(head, &[Kind::Tensor, Kind::Other])?)),
            Kind::ScalarList => {
                let scalars = [Kind::Int, Kind::Double, Kind::Bool, Kind::Complex, Kind::Other];
                Some(Input::ScalarList(self.items(head, &scalars)?))
            }
            Kind::TextList => Some(Input::TextList(self.items(head, &[Kind::Text])?)),
            _ => self.single(kind, head),
        }
    }

    fn head(&mut self) -> Option<(Kind, u64)> {
        let head = *self.words.next()?;
        Some((*KINDS.get((head & 15) as usize)?, head))
    }

    /// The items of a list, each of one of these kinds.
    fn items(&mut self, head: u64, kinds: &[Kind]) -> Option<Vec<Input>> {
        let count = self.count(head)?;
        (0..count)
            .map(|_| {
                let (kind, head) = self.head()?;
                if kinds.contains(&kind) { self.single(kind, head) } else { None }
            })
            .collect()
    }

    /// A count of things that take a word at least.
    fn count(&self, head: u64) -> Option<usize> {
        let count = usize::try_from(head >> COUNT_SHIFT).ok()?;
        (count <= self.words.as_slice().len()).then_some(count)
    }

    fn single(&mut self, kind: Kind, head: u64) -> Option<Input> {
        Some(match kind {
            Kind::Other => Input::Other,
            Kind::Tensor => {
                let count = self.count(head)?;
                let sizes = self.numbers(count)?;
                let strides = if head & STRIDES_BIT == 0 { None } else { Some(self.numbers(count)?) };
                Input::Tensor { dtype: (head >> DTYPE_SHIFT & (DTYPES - 1)) as u8, sizes, strides }
            }
            Kind::Int => {
                let word = *self.words.next()?;
                Input::Int((word >> 1) as i64 ^ -((word & 1) as i64))
            }
            Kind::Double => Input::Double(self.double()?),
            Kind::Bool => Input::Bool(head >> COUNT_SHIFT != 0),
            Kind::Complex => Input::Complex(self.double()?, self.double()?),
            Kind::Keyword => Input::Keyword(self.text(head)?),
            Kind::Text => Input::Text(self.text(head)?),
            Kind::TensorList | Kind::ScalarList | Kind::TextList => return None,
        })
    }

    fn double(&mut self) -> Option<f64> {
        self.words.next().map(|word| f64::from_bits(*word))
    }

    fn numbers(&mut self, count: usize) -> Option<Vec<i64>> {
        (0..count).map(|_| self.words.next().map(|word| *word as i64)).collect()
    }

    fn text(&mut self, head: u64) -> Option<String> {
        let len = usize::try_from(head >> COUNT_SHIFT).ok()?;
        let (words, rest) = self.words.as_slice().split_at_checked(len.div_ceil(8))?;
        self.words = rest.iter();
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(len);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests;
