//! Where CUPTI's records have their fields: bytes from the beginning of the record, the same from CUDA 11.8 to 13.5.
//! `tests/python/test_cupti_headers.py` reads the places below and compares them with CUPTI's headers.

macro_rules! fields {
    ($(#[$doc:meta])* $record:ident { $($field:ident = $offset:literal as $kind:ty;)* }) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)]
        pub(super) mod $record {
            use super::Field;
            $(pub(in crate::cuda) const $field: Field<$kind> = Field::at($offset);)*
        }
    };
}

/// Where a number stands.
pub(super) struct Field<T> {
    offset: usize,
    kind: std::marker::PhantomData<T>,
}

impl<T> Field<T> {
    const fn at(offset: usize) -> Self {
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

fields! {
    /// `CUpti_ActivityKernel8` and later.
    kernel {
        registersPerThread = 6 as u16;
        start = 16 as u64;
        end = 24 as u64;
        deviceId = 40 as u32;
        contextId = 44 as u32;
        streamId = 48 as u32;
        gridX = 52 as u32;
        gridY = 56 as u32;
        gridZ = 60 as u32;
        blockX = 64 as u32;
        blockY = 68 as u32;
        blockZ = 72 as u32;
        staticSharedMemory = 76 as u32;
        dynamicSharedMemory = 80 as u32;
        correlationId = 92 as u32;
        name = 104 as u64;
        graphNodeId = 144 as u64;
        graphId = 156 as u32;
    }
}

fields! {
    /// `CUpti_ActivityMemcpy5` and later.
    memcpy {
        copyKind = 4 as u8;
        srcKind = 5 as u8;
        dstKind = 6 as u8;
        bytes = 8 as u64;
        start = 16 as u64;
        end = 24 as u64;
        deviceId = 32 as u32;
        contextId = 36 as u32;
        streamId = 40 as u32;
        correlationId = 44 as u32;
        graphNodeId = 64 as u64;
        graphId = 72 as u32;
    }
}

fields! {
    /// `CUpti_ActivityMemcpyPtoP4`.
    memcpy_between {
        copyKind = 4 as u8;
        srcKind = 5 as u8;
        dstKind = 6 as u8;
        bytes = 8 as u64;
        start = 16 as u64;
        end = 24 as u64;
        deviceId = 32 as u32;
        contextId = 36 as u32;
        streamId = 40 as u32;
        srcDeviceId = 44 as u32;
        dstDeviceId = 52 as u32;
        correlationId = 60 as u32;
        graphNodeId = 72 as u64;
        graphId = 80 as u32;
    }
}

fields! {
    /// `CUpti_ActivityMemset4` and later.
    memset {
        bytes = 8 as u64;
        start = 16 as u64;
        end = 24 as u64;
        deviceId = 32 as u32;
        contextId = 36 as u32;
        streamId = 40 as u32;
        correlationId = 44 as u32;
        memoryKind = 50 as u16;
        graphNodeId = 64 as u64;
        graphId = 72 as u32;
    }
}

fields! {
    /// `CUpti_ActivityGraphTrace` and later.
    graph {
        correlationId = 4 as u32;
        start = 8 as u64;
        end = 16 as u64;
        deviceId = 24 as u32;
        graphId = 28 as u32;
        contextId = 32 as u32;
        streamId = 36 as u32;
    }
}

fields! {
    /// `CUpti_ActivityAPI`.
    call {
        cbid = 4 as u32;
        start = 8 as u64;
        end = 16 as u64;
        threadId = 28 as u32;
        correlationId = 32 as u32;
        returnValue = 36 as u32;
    }
}

fields! {
    /// `CUpti_ActivityOverhead` and later; the thread is of `objectId`, where `objectKind` is a thread.
    overhead {
        overheadKind = 4 as u32;
        objectKind = 8 as u32;
        thread = 16 as u32;
        start = 24 as u64;
        end = 32 as u64;
    }
}

fields! {
    /// `CUpti_ActivitySynchronization` and later; the last field is there from CUDA 12.8 on.
    synchronization {
        r#type = 4 as u32;
        start = 8 as u64;
        end = 16 as u64;
        correlationId = 24 as u32;
        contextId = 28 as u32;
        streamId = 32 as u32;
        cudaEventId = 36 as u32;
        cudaEventSyncId = 40 as u64;
    }
}

fields! {
    /// `CUpti_ActivityCudaEvent` and later; the last field is there from CUDA 12.8 on.
    event {
        correlationId = 4 as u32;
        contextId = 8 as u32;
        streamId = 12 as u32;
        eventId = 16 as u32;
        cudaEventSyncId = 48 as u64;
    }
}

fields! {
    /// `CUpti_ActivityMarker2`; the thread is of `objectId`, where `objectKind` is a thread.
    marker {
        flags = 4 as u32;
        timestamp = 8 as u64;
        id = 16 as u32;
        objectKind = 20 as u32;
        thread = 28 as u32;
        name = 40 as u64;
    }
}
