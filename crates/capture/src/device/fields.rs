//! What a field of an activity record can be: where it is in the record's words, and its value where fields have names.

use super::words::Words;
use super::{Api, Direction, MemoryKind, SynchronizationKind};

/// The value of a field, for formats in which fields have names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldValue<'a> {
    /// A number.
    Number(u64),
    /// Sizes in x, y, z.
    Sizes([u32; 3]),
    /// Two numbers.
    Pair([u32; 2]),
    /// One of a few words.
    Word(&'a str),
}

/// A type of fields. A field of the default value says nothing: it is not known, or a 0 that means "none".
pub(super) trait Field: Copy + Default + PartialEq {
    /// Puts it together from its numbers, by their place among them; none is there where the record ends before it.
    fn from_numbers(number: impl Fn(usize) -> Option<u64>) -> Self;

    /// The number at that place.
    fn number(self, place: usize) -> u64;

    /// `None` where it is not known.
    fn value(self) -> Option<FieldValue<'static>>;

    /// `None` where no such field can have the value.
    fn from_value(value: FieldValue<'_>) -> Option<Self>;
}

/// A record's fields, whatever the record is.
pub(super) trait Record {
    fn read(&mut self, words: &[u64]);
    fn write(&self, words: &mut Words);
    fn members(&self, visit: &mut dyn FnMut(&'static str, FieldValue<'static>));
    fn value(&self, name: &str) -> Option<FieldValue<'static>>;
    fn set(&mut self, name: &str, value: FieldValue<'_>);
}

/// Declares a record: the struct, and the bytes of the record's words at which the numbers of each field begin. Fields
/// that are marked as `column` have columns of their own in process files, all others are members of a JSON object.
macro_rules! record {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$item_doc:meta])* $item:ident: $item_type:ty,)*
            =>
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $at:tt $($column:ident)?,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $name {
            $($(#[$item_doc])* pub $item: $item_type,)*
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl Record for $name {
            fn read(&mut self, words: &[u64]) {
                $(self.$field = Field::from_numbers(|place| number_at(words, $at[place]));)*
            }

            fn write(&self, words: &mut Words) {
                $($at.iter().enumerate().for_each(|(place, at)| words.put(*at, self.$field.number(place)));)*
            }

            fn members(&self, _visit: &mut dyn FnMut(&'static str, FieldValue<'static>)) {
                $(record!(@member self $field _visit $($column)?);)*
            }

            fn value(&self, name: &str) -> Option<FieldValue<'static>> {
                match name {
                    $(stringify!($field) => self.$field.value(),)*
                    _ => None,
                }
            }

            fn set(&mut self, name: &str, value: FieldValue<'_>) {
                match name {
                    $(stringify!($field) => self.$field = Field::from_value(value).unwrap_or(self.$field),)*
                    _ => {}
                }
            }
        }
    };
    (@member $self:ident $field:ident $visit:ident column) => {};
    (@member $self:ident $field:ident $visit:ident) => {
        if $self.$field != Default::default() {
            $self.$field.value().into_iter().for_each(|value| $visit(stringify!($field), value));
        }
    };
}
pub(super) use record;

/// The bits from that byte to the end of its word.
pub(super) fn number_at(words: &[u64], at: usize) -> Option<u64> {
    words.get(at / 8).map(|word| word >> (at % 8 * 8))
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Field for $type {
            fn from_numbers(number: impl Fn(usize) -> Option<u64>) -> Self {
                number(0).unwrap_or(0) as Self
            }

            fn number(self, _: usize) -> u64 {
                self as u64
            }

            fn value(self) -> Option<FieldValue<'static>> {
                Some(FieldValue::Number(self as u64))
            }

            fn from_value(value: FieldValue<'_>) -> Option<Self> {
                if let FieldValue::Number(number) = value { Self::try_from(number).ok() } else { None }
            }
        })*
    };
}

numbers!(u32 u64 i64);

/// The largest number is in place of one that is not known.
macro_rules! numbers_if_known {
    ($($type:ty)*) => {
        $(impl Field for Option<$type> {
            fn from_numbers(number: impl Fn(usize) -> Option<u64>) -> Self {
                number(0).map(|number| number as $type).filter(|number| *number != <$type>::MAX)
            }

            fn number(self, _: usize) -> u64 {
                self.unwrap_or(<$type>::MAX).into()
            }

            fn value(self) -> Option<FieldValue<'static>> {
                self.and_then(Field::value)
            }

            fn from_value(value: FieldValue<'_>) -> Option<Self> {
                Field::from_value(value).map(Some)
            }
        })*
    };
}

numbers_if_known!(u32 u64);

impl Field for Option<[u32; 3]> {
    fn from_numbers(number: impl Fn(usize) -> Option<u64>) -> Self {
        let sizes = [number(0)?, number(1)?, number(2)?].map(|size| size as u32);
        Some(sizes).filter(|sizes| *sizes != [u32::MAX; 3])
    }

    fn number(self, place: usize) -> u64 {
        self.unwrap_or([u32::MAX; 3])[place].into()
    }

    fn value(self) -> Option<FieldValue<'static>> {
        self.map(FieldValue::Sizes)
    }

    fn from_value(value: FieldValue<'_>) -> Option<Self> {
        if let FieldValue::Sizes(sizes) = value { Some(Some(sizes)) } else { None }
    }
}

/// Two numbers, and a byte that says whether they are known.
impl Field for Option<(u32, u32)> {
    fn from_numbers(number: impl Fn(usize) -> Option<u64>) -> Self {
        (number(2)? as u8 != 0).then_some((number(0)? as u32, number(1)? as u32))
    }

    fn number(self, place: usize) -> u64 {
        self.map_or(0, |(first, second)| [first, second, 1][place].into())
    }

    fn value(self) -> Option<FieldValue<'static>> {
        self.map(|(first, second)| FieldValue::Pair([first, second]))
    }

    fn from_value(value: FieldValue<'_>) -> Option<Self> {
        if let FieldValue::Pair([first, second]) = value { Some(Some((first, second))) } else { None }
    }
}

impl Field for bool {
    fn from_numbers(number: impl Fn(usize) -> Option<u64>) -> Self {
        u32::from_numbers(number) != 0
    }

    fn number(self, _: usize) -> u64 {
        self.into()
    }

    fn value(self) -> Option<FieldValue<'static>> {
        u32::from(self).value()
    }

    fn from_value(value: FieldValue<'_>) -> Option<Self> {
        u64::from_value(value).map(|number| number != 0)
    }
}

macro_rules! words_of_a_byte {
    ($($type:ty)*) => {
        $(impl Field for $type {
            fn from_numbers(number: impl Fn(usize) -> Option<u64>) -> Self {
                Self::from_number(number(0).unwrap_or(0) as u8)
            }

            fn number(self, _: usize) -> u64 {
                self as u64
            }

            fn value(self) -> Option<FieldValue<'static>> {
                Some(FieldValue::Word(self.as_str()))
            }

            fn from_value(value: FieldValue<'_>) -> Option<Self> {
                if let FieldValue::Word(word) = value { Some(Self::from_name(word)) } else { None }
            }
        })*
    };
}

words_of_a_byte!(Api Direction MemoryKind SynchronizationKind);
