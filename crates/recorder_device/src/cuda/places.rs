//! Numbers at fixed places of a record.

macro_rules! fields {
    ($(#[$doc:meta])* $record:ident { $($field:ident = $offset:literal as $kind:ty;)* }) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)]
        mod $record {
            use crate::cuda::places::Field;
            $(pub(super) const $field: Field<$kind> = Field::at($offset);)*
        }
    };
}

/// Where a number stands.
pub(super) struct Field<T> {
    offset: usize,
    kind: std::marker::PhantomData<T>,
}

impl<T> Field<T> {
    /// At this byte.
    pub(super) const fn at(offset: usize) -> Self {
        Self { offset, kind: std::marker::PhantomData }
    }
}

macro_rules! readable {
    ($($kind:ty)*) => {
        $(impl Field<$kind> {
            /// The number; `None` where the record ends before it.
            pub(super) fn of(&self, record: &[u8]) -> Option<$kind> {
                let bytes = record.get(self.offset..)?.first_chunk()?;
                Some(<$kind>::from_ne_bytes(*bytes))
            }
        })*
    };
}

readable!(u8 u16 u32 u64);

pub(super) use fields;
