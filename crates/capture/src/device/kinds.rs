//! The kinds of copies, memory, calls and waits: numbers in captures, words in other files.

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $value:literal $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(u8)]
        pub enum $name { $($(#[$item_doc])* $item = $value,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$item),*];

            /// The one with this number; of a number that is not known the one that says so.
            pub fn from_number(number: u8) -> Self {
                match number { $($value => Self::$item,)* _ => Self::default() }
            }

            /// Its name in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$item => $text,)* }
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Self {
                match name { $($text => Self::$item,)* _ => Self::default() }
            }
        }
    };
}

numbered! {
    /// Where a memcpy goes, in CUPTI's numbers.
    Direction {
        /// Not known.
        #[default]
        Unknown = 0 "unknown";
        /// Host to device.
        HostToDevice = 1 "HtoD";
        /// Device to host.
        DeviceToHost = 2 "DtoH";
        /// Host to array.
        HostToArray = 3 "HtoA";
        /// Array to host.
        ArrayToHost = 4 "AtoH";
        /// Array to array.
        ArrayToArray = 5 "AtoA";
        /// Array to device.
        ArrayToDevice = 6 "AtoD";
        /// Device to array.
        DeviceToArray = 7 "DtoA";
        /// Within a device.
        DeviceToDevice = 8 "DtoD";
        /// Within the host.
        HostToHost = 9 "HtoH";
        /// Between devices.
        PeerToPeer = 10 "PtoP";
    }
}

numbered! {
    /// A kind of memory, in CUPTI's numbers.
    MemoryKind {
        /// Not known.
        #[default]
        Unknown = 0 "Unknown";
        /// Host memory that may be paged out.
        Pageable = 1 "Pageable";
        /// Host memory that may not.
        Pinned = 2 "Pinned";
        /// Of a device.
        Device = 3 "Device";
        /// An array of a device.
        Array = 4 "Array";
        /// Moved by the driver between host and devices.
        Managed = 5 "Managed";
        /// Of a device, static.
        DeviceStatic = 6 "Device Static";
        /// Moved by the driver, static.
        ManagedStatic = 7 "Managed Static";
    }
}

numbered! {
    /// Whose function was called.
    Api {
        /// The driver's.
        #[default]
        Driver = 0 "driver";
        /// The runtime's.
        Runtime = 1 "runtime";
    }
}

numbered! {
    /// Who waits for what, in CUPTI's numbers and Kineto's names.
    SynchronizationKind {
        /// Not known.
        #[default]
        Unknown = 0 "Unknown";
        /// The host for an event.
        Event = 1 "Event Sync";
        /// A stream for an event.
        StreamWaitEvent = 2 "Stream Wait Event";
        /// The host for a stream.
        Stream = 3 "Stream Sync";
        /// The host for a context.
        Context = 4 "Context Sync";
    }
}
