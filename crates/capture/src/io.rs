//! Calls on files: which there are, and how a record says one.

/// The interface that a call belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoLayer {
    /// System calls, through the C library's functions for them.
    Posix,
    /// Buffered streams of the C library.
    Stdio,
    /// MPI's interface for files.
    MpiIo,
    /// Data sets and attributes of HDF5 files.
    Hdf5,
    /// Files that are mapped into memory.
    PageFault,
    /// Sockets, in place of files.
    Net,
}

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoAction {
    /// Moves bytes from a file.
    Read,
    /// Moves bytes to a file.
    Write,
    /// Opens or makes a file.
    Open,
    /// Anything else.
    Metadata,
}

macro_rules! calls {
    ($($value:literal $name:ident $text:literal $layer:ident $action:ident;)*) => {
        /// A function of the C library, of MPI or of HDF5 that uses files, or what the system does in its place. Functions
        /// that differ only in the width of their numbers, or in checks that a compiler adds, are one.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each is what its library documents")]
        pub enum IoFunction { $($name = $value,)* }

        impl IoFunction {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The function with this number.
            pub fn from_number(number: u8) -> Option<Self> {
                match number { $($value => Some(Self::$name),)* _ => None }
            }

            /// The function with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }

            /// Its name in C; of a page fault, what it is.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The interface that it belongs to.
            #[inline]
            pub fn layer(self) -> IoLayer {
                match self { $(Self::$name => IoLayer::$layer,)* }
            }

            /// True for what reads or writes, and says how much.
            pub fn moves_bytes(self) -> bool {
                matches!(self.action(), IoAction::Read | IoAction::Write) && self.layer() != IoLayer::PageFault
            }

            /// What it does.
            #[inline]
            pub fn action(self) -> IoAction {
                match self { $(Self::$name => IoAction::$action,)* }
            }
        }
    };
}

// Numbers stand in files: new functions get new ones.
calls! {
    1 Open "open" Posix Open;
    2 Openat "openat" Posix Open;
    3 Openat2 "openat2" Posix Open;
    4 Creat "creat" Posix Open;
    5 Close "close" Posix Metadata;
    6 Dup "dup" Posix Metadata;
    7 Dup2 "dup2" Posix Metadata;
    8 Dup3 "dup3" Posix Metadata;
    10 Read "read" Posix Read;
    11 Pread "pread" Posix Read;
    12 Readv "readv" Posix Read;
    13 Preadv "preadv" Posix Read;
    14 Preadv2 "preadv2" Posix Read;
    15 Write "write" Posix Write;
    16 Pwrite "pwrite" Posix Write;
    17 Writev "writev" Posix Write;
    18 Pwritev "pwritev" Posix Write;
    19 Pwritev2 "pwritev2" Posix Write;
    20 Sendfile "sendfile" Posix Read;
    21 CopyFileRange "copy_file_range" Posix Read;
    22 Splice "splice" Posix Read;
    // From what is not recorded.
    23 SendfileTo "sendfile (to)" Posix Write;
    24 CopyFileRangeTo "copy_file_range (to)" Posix Write;
    25 SpliceTo "splice (to)" Posix Write;
    30 Lseek "lseek" Posix Metadata;
    31 Fsync "fsync" Posix Metadata;
    32 Fdatasync "fdatasync" Posix Metadata;
    33 SyncFileRange "sync_file_range" Posix Metadata;
    34 Ftruncate "ftruncate" Posix Metadata;
    35 Truncate "truncate" Posix Metadata;
    36 Fallocate "fallocate" Posix Metadata;
    37 PosixFadvise "posix_fadvise" Posix Metadata;
    38 Readahead "readahead" Posix Metadata;
    39 Flock "flock" Posix Metadata;
    40 Fcntl "fcntl" Posix Metadata;
    50 Stat "stat" Posix Metadata;
    51 Lstat "lstat" Posix Metadata;
    52 Fstat "fstat" Posix Metadata;
    53 Fstatat "fstatat" Posix Metadata;
    54 Statx "statx" Posix Metadata;
    55 Access "access" Posix Metadata;
    56 Faccessat "faccessat" Posix Metadata;
    57 Readlink "readlink" Posix Metadata;
    58 Readlinkat "readlinkat" Posix Metadata;
    60 Rename "rename" Posix Metadata;
    61 Renameat "renameat" Posix Metadata;
    62 Unlink "unlink" Posix Metadata;
    63 Unlinkat "unlinkat" Posix Metadata;
    64 Mkdir "mkdir" Posix Metadata;
    65 Mkdirat "mkdirat" Posix Metadata;
    66 Rmdir "rmdir" Posix Metadata;
    67 Link "link" Posix Metadata;
    68 Linkat "linkat" Posix Metadata;
    69 Symlink "symlink" Posix Metadata;
    70 Symlinkat "symlinkat" Posix Metadata;
    71 Chmod "chmod" Posix Metadata;
    72 Fchmod "fchmod" Posix Metadata;
    73 Fchmodat "fchmodat" Posix Metadata;
    74 Opendir "opendir" Posix Metadata;
    75 Readdir "readdir" Posix Metadata;
    76 Closedir "closedir" Posix Metadata;
    77 Getdents "getdents64" Posix Metadata;
    78 Fdopendir "fdopendir" Posix Metadata;
    80 Mmap "mmap" Posix Metadata;
    81 Munmap "munmap" Posix Metadata;
    82 Msync "msync" Posix Metadata;
    83 Madvise "madvise" Posix Metadata;
    84 Mremap "mremap" Posix Metadata;
    85 Mkstemp "mkstemp" Posix Open;
    90 IoSubmit "io_submit" Posix Metadata;
    91 AioRead "io_getevents (read)" Posix Read;
    92 AioWrite "io_getevents (write)" Posix Write;
    93 AioOther "io_getevents (sync)" Posix Metadata;
    94 IoUringSubmit "io_uring_submit" Posix Metadata;
    95 IoUringRead "io_uring (read)" Posix Read;
    96 IoUringWrite "io_uring (write)" Posix Write;
    97 IoUringSync "io_uring (sync)" Posix Metadata;
    100 Fopen "fopen" Stdio Open;
    101 Fdopen "fdopen" Stdio Open;
    102 Freopen "freopen" Stdio Open;
    103 Fclose "fclose" Stdio Metadata;
    104 Fread "fread" Stdio Read;
    105 Fwrite "fwrite" Stdio Write;
    106 Fgets "fgets" Stdio Read;
    107 Fputs "fputs" Stdio Write;
    108 Getline "getline" Stdio Read;
    109 Getdelim "getdelim" Stdio Read;
    110 Fprintf "fprintf" Stdio Write;
    111 Fflush "fflush" Stdio Metadata;
    112 Fseek "fseek" Stdio Metadata;
    113 Dprintf "dprintf" Stdio Write;
    114 Tmpfile "tmpfile" Stdio Open;
    120 MajorFault "major page fault" PageFault Read;
    121 MinorFault "minor page fault (one in 64)" PageFault Metadata;
    122 SampledFault "major page fault (place sampled)" PageFault Read;
    130 MpiFileOpen "MPI_File_open" MpiIo Open;
    131 MpiFileClose "MPI_File_close" MpiIo Metadata;
    132 MpiFileDelete "MPI_File_delete" MpiIo Metadata;
    133 MpiFileSync "MPI_File_sync" MpiIo Metadata;
    134 MpiFileSetSize "MPI_File_set_size" MpiIo Metadata;
    135 MpiFilePreallocate "MPI_File_preallocate" MpiIo Metadata;
    136 MpiFileSetView "MPI_File_set_view" MpiIo Metadata;
    137 MpiFileSeek "MPI_File_seek" MpiIo Metadata;
    140 MpiFileRead "MPI_File_read" MpiIo Read;
    141 MpiFileReadAll "MPI_File_read_all" MpiIo Read;
    142 MpiFileReadAt "MPI_File_read_at" MpiIo Read;
    143 MpiFileReadAtAll "MPI_File_read_at_all" MpiIo Read;
    144 MpiFileReadShared "MPI_File_read_shared" MpiIo Read;
    145 MpiFileReadOrdered "MPI_File_read_ordered" MpiIo Read;
    150 MpiFileWrite "MPI_File_write" MpiIo Write;
    151 MpiFileWriteAll "MPI_File_write_all" MpiIo Write;
    152 MpiFileWriteAt "MPI_File_write_at" MpiIo Write;
    153 MpiFileWriteAtAll "MPI_File_write_at_all" MpiIo Write;
    154 MpiFileWriteShared "MPI_File_write_shared" MpiIo Write;
    155 MpiFileWriteOrdered "MPI_File_write_ordered" MpiIo Write;
    160 H5Fopen "H5Fopen" Hdf5 Open;
    161 H5Fcreate "H5Fcreate" Hdf5 Open;
    162 H5Fclose "H5Fclose" Hdf5 Metadata;
    163 H5Fflush "H5Fflush" Hdf5 Metadata;
    164 H5Dopen "H5Dopen" Hdf5 Metadata;
    165 H5Dcreate "H5Dcreate" Hdf5 Metadata;
    166 H5Dclose "H5Dclose" Hdf5 Metadata;
    167 H5Dread "H5Dread" Hdf5 Read;
    168 H5Dwrite "H5Dwrite" Hdf5 Write;
    169 H5DreadChunk "H5Dread_chunk" Hdf5 Read;
    170 H5DwriteChunk "H5Dwrite_chunk" Hdf5 Write;
    171 H5Aread "H5Aread" Hdf5 Read;
    172 H5Awrite "H5Awrite" Hdf5 Write;
    180 MpiFileIread "MPI_File_iread" MpiIo Metadata;
    181 MpiFileIreadAll "MPI_File_iread_all" MpiIo Metadata;
    182 MpiFileIreadAt "MPI_File_iread_at" MpiIo Metadata;
    183 MpiFileIreadAtAll "MPI_File_iread_at_all" MpiIo Metadata;
    184 MpiFileIreadShared "MPI_File_iread_shared" MpiIo Metadata;
    185 MpiFileIwrite "MPI_File_iwrite" MpiIo Metadata;
    186 MpiFileIwriteAll "MPI_File_iwrite_all" MpiIo Metadata;
    187 MpiFileIwriteAt "MPI_File_iwrite_at" MpiIo Metadata;
    188 MpiFileIwriteAtAll "MPI_File_iwrite_at_all" MpiIo Metadata;
    189 MpiFileIwriteShared "MPI_File_iwrite_shared" MpiIo Metadata;
    200 Connect "connect" Net Open;
    201 Recv "recv" Net Read;
    202 Recvfrom "recvfrom" Net Read;
    203 Recvmsg "recvmsg" Net Read;
    204 Recvmmsg "recvmmsg" Net Read;
    205 SocketRead "read (socket)" Net Read;
    206 SocketReadv "readv (socket)" Net Read;
    207 Send "send" Net Write;
    208 Sendto "sendto" Net Write;
    209 Sendmsg "sendmsg" Net Write;
    210 Sendmmsg "sendmmsg" Net Write;
    211 SocketWrite "write (socket)" Net Write;
    212 SocketWritev "writev (socket)" Net Write;
    220 MpiFileReadAllBegin "MPI_File_read_all_begin" MpiIo Metadata;
    221 MpiFileReadAllEnd "MPI_File_read_all_end" MpiIo Read;
    222 MpiFileReadAtAllBegin "MPI_File_read_at_all_begin" MpiIo Metadata;
    223 MpiFileReadAtAllEnd "MPI_File_read_at_all_end" MpiIo Read;
    224 MpiFileReadOrderedBegin "MPI_File_read_ordered_begin" MpiIo Metadata;
    225 MpiFileReadOrderedEnd "MPI_File_read_ordered_end" MpiIo Read;
    226 MpiFileWriteAllBegin "MPI_File_write_all_begin" MpiIo Metadata;
    227 MpiFileWriteAllEnd "MPI_File_write_all_end" MpiIo Write;
    228 MpiFileWriteAtAllBegin "MPI_File_write_at_all_begin" MpiIo Metadata;
    229 MpiFileWriteAtAllEnd "MPI_File_write_at_all_end" MpiIo Write;
    230 MpiFileWriteOrderedBegin "MPI_File_write_ordered_begin" MpiIo Metadata;
    231 MpiFileWriteOrderedEnd "MPI_File_write_ordered_end" MpiIo Write;
}

/// The error of a call of which only that it failed is known: MPI and HDF5 number theirs in other ways than the system.
pub const UNKNOWN_ERROR: u16 = u16::MAX;

/// A call, as its record says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoRecord {
    /// What was called.
    pub function: IoFunction,
    /// The error that it gave; 0 for none.
    pub errno: u16,
    /// How long it took.
    pub duration_ticks: u64,
    /// The file's number; 0: not known.
    pub file: u32,
    /// The other file of a call on two; 0: none.
    pub other_file: u32,
    /// Bytes that were moved.
    pub bytes: u64,
    /// Bytes that were asked for, where that is not what was moved.
    pub asked: Option<u64>,
    /// Where in the file.
    pub offset: Option<u64>,
    /// The system's number of the thread that it is of; 0: the one that writes the record.
    pub thread: u32,
}

/// Words of the longest record, its first one included.
pub const LONGEST: usize = 3 + 5;

/// What follows the two words that each record has: bits of word 1.
const HAS_ASKED: u64 = 1 << 8;
const HAS_OFFSET: u64 = 1 << 9;
const HAS_OTHER_FILE: u64 = 1 << 10;
/// The upper halves of the duration and of the bytes.
const HAS_UPPER: u64 = 1 << 11;
const HAS_THREAD: u64 = 1 << 12;
const FOLLOWS: u64 = HAS_ASKED | HAS_OFFSET | HAS_OTHER_FILE | HAS_UPPER | HAS_THREAD;
const ERRNO_SHIFT: u32 = 16;
const HALF: u32 = 32;

impl IoRecord {
    /// The words after the first one, and how many they are.
    #[inline(always)]
    pub fn words(&self) -> ([u64; LONGEST - 1], usize) {
        let mut words = [0; LONGEST - 1];
        let low = |number: u64| number & u64::from(u32::MAX);
        let mut first = self.function as u64 | u64::from(self.errno) << ERRNO_SHIFT | low(self.duration_ticks) << HALF;
        words[1] = u64::from(self.file) | low(self.bytes) << HALF;
        let mut len = 2;
        let mut follow = |bit: u64, word: u64| {
            first |= bit;
            words[len] = word;
            len += 1;
        };
        if let Some(asked) = self.asked {
            follow(HAS_ASKED, asked);
        }
        if let Some(offset) = self.offset {
            follow(HAS_OFFSET, offset);
        }
        if self.other_file != 0 {
            follow(HAS_OTHER_FILE, self.other_file.into());
        }
        if (self.duration_ticks | self.bytes) >> HALF != 0 {
            follow(HAS_UPPER, self.duration_ticks >> HALF | self.bytes >> HALF << HALF);
        }
        if self.thread != 0 {
            follow(HAS_THREAD, self.thread.into());
        }
        words[0] = first;
        (words, len)
    }

    /// Words after the first one of a record whose word 1 is `word`.
    pub(crate) fn len(word: u64) -> usize {
        2 + (word & FOLLOWS).count_ones() as usize
    }

    /// The thread that such a record is of, where another one wrote it.
    #[inline]
    pub(crate) fn other_thread(word: impl Fn(usize) -> u64) -> Option<u32> {
        // The last word.
        (word(0) & HAS_THREAD != 0).then(|| word(Self::len(word(0)) - 1) as u32)
    }

    /// What a record says whose words after the first are `word`; `None` for a function that is not known.
    pub(crate) fn of_words(word: impl Fn(usize) -> u64) -> Option<Self> {
        let (first, second) = (word(0), word(1));
        let mut next = 1;
        let mut follow = |bit: u64| {
            next += usize::from(first & bit != 0);
            (first & bit != 0).then(|| word(next))
        };
        let (asked, offset) = (follow(HAS_ASKED), follow(HAS_OFFSET));
        let (other_file, upper) = (follow(HAS_OTHER_FILE), follow(HAS_UPPER).unwrap_or(0));
        let thread = follow(HAS_THREAD);
        Some(Self {
            function: IoFunction::from_number(first as u8)?,
            errno: (first >> ERRNO_SHIFT) as u16,
            duration_ticks: first >> HALF | upper << HALF,
            file: second as u32,
            other_file: other_file.unwrap_or(0) as u32,
            bytes: second >> HALF | upper >> HALF << HALF,
            asked,
            offset,
            thread: thread.unwrap_or(0) as u32,
        })
    }
}

/// A call on a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoCall {
    /// Ordinal of the thread that called.
    pub thread: u32,
    /// When it began, ns.
    pub start_ns: i64,
    /// When it ended, ns.
    pub end_ns: i64,
    /// What was called.
    pub function: IoFunction,
    /// The error that it gave; 0 for none.
    pub errno: u16,
    /// Place of the file's path in the capture's list; `None` where it is not known.
    pub file: Option<u32>,
    /// That of the other file of a call on two.
    pub other_file: Option<u32>,
    /// Bytes that were moved, of what reads or writes.
    pub bytes: Option<i64>,
    /// Bytes that were asked for, where that is known.
    pub asked_bytes: Option<i64>,
    /// Where in the file.
    pub offset: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = IoRecord> {
        let function = (0..IoFunction::ALL.len()).prop_map(|at| IoFunction::ALL[at]);
        // Ticks are kept modulo 2^56.
        let duration = prop_oneof![0..1_u64 << 20, Just(u64::from(u32::MAX)), (1_u64 << 32)..(1_u64 << 56)];
        let number = || prop_oneof![0..1_u64 << 20, any::<u64>()];
        let option = || proptest::option::of(number());
        let or_none = || prop_oneof![Just(0), any::<u32>()];
        let numbers = (any::<u32>(), or_none(), or_none());
        (function, any::<u16>(), duration, numbers, number(), option(), option()).prop_map(
            |(function, errno, duration_ticks, (file, other_file, thread), bytes, asked, offset)| IoRecord {
                function,
                errno,
                duration_ticks,
                file,
                other_file,
                bytes,
                asked,
                offset,
                thread,
            },
        )
    }

    proptest! {
        #[test]
        fn a_record_says_what_was_put_in(record in record()) {
            let (words, len) = record.words();
            prop_assert_eq!(IoRecord::of_words(|at| words[..len][at]), Some(record));
            prop_assert_eq!(IoRecord::len(words[0]), len);
        }
    }

    #[test]
    fn functions_have_numbers_and_names_of_their_own() {
        let numbers: std::collections::BTreeSet<u8> = IoFunction::ALL.iter().map(|function| *function as u8).collect();
        let names: std::collections::BTreeSet<&str> = IoFunction::ALL.iter().map(|function| function.name()).collect();
        assert_eq!((numbers.len(), names.len()), (IoFunction::ALL.len(), IoFunction::ALL.len()));
        assert_eq!(IoFunction::from_number(IoFunction::Read as u8), Some(IoFunction::Read));
        assert_eq!(IoFunction::from_number(0), None);
    }
}
