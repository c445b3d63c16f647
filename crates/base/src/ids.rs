//! Newtype indices, so that a track id is never used where a slice id is meant.

/// Defines `pub struct $name(u32)`, an index into one table, with `index()` and `from_index()`.
#[macro_export]
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the table this id belongs to.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the row at `index`.
            ///
            /// # Panics
            /// When `index` does not fit 32 bits: tables are limited to `u32::MAX` rows.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("table has more than u32::MAX rows"))
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u32(self.0)
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                u32::deserialize(deserializer).map(Self)
            }
        }
    };
}
