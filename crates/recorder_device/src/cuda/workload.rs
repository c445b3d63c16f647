//! Work for a device of CUDA's that is known to the last byte: copies, a fill, a kernel, a graph. By the driver alone,
//! so that neither PyTorch nor the runtime is needed.

use super::driver::{self, Driver};
use crate::Refusal;
use crate::library::functions;
use crate::proof::{Expected, Launched, Workload, monotonic_ns};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use stepscope_recorder::device::Direction;

/// What runs on the device, for the driver to compile.
const KERNEL: &str = include_str!("../../data/proof.ptx");
const NAME: &str = "stepscope_proof";
/// How often a thread adds: a few 10 us altogether, which no clock of a device takes for nothing.
const TURNS: u32 = 100;
/// Of the kernel that is launched, and of those in the graph.
const ALONE: Shape = Shape { grid: [3, 1, 1], block: [64, 1, 1] };
const IN_GRAPH: [Shape; 2] =
    [Shape { grid: [2, 1, 1], block: [96, 1, 1] }, Shape { grid: [5, 1, 1], block: [32, 1, 1] }];
/// Words that the kernels add to, each by a thread of its own: the most that one launch has.
const WORDS: usize = 192;
const COPIED_TO_BYTES: usize = 1 << 20;
const COPIED_BACK_BYTES: usize = 1 << 19;
const FILLED_BYTES: usize = 3 << 20;

const OUT_OF_MEMORY: Code = 2;
const NON_BLOCKING: c_uint = 1;
/// Other threads may do as they like while a graph is captured.
const RELAXED: c_int = 2;

type Code = c_int;
type Handle = *mut c_void;
type Address = u64;

#[derive(Clone, Copy)]
struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
}

functions! {
    /// The driver's functions that make a device work.
    struct Functions {
        required device: unsafe extern "C" fn(*mut c_int, c_int) -> Code = c"cuDeviceGet";
        required retain: unsafe extern "C" fn(*mut Handle, c_int) -> Code = c"cuDevicePrimaryCtxRetain";
        required release: unsafe extern "C" fn(c_int) -> Code = c"cuDevicePrimaryCtxRelease_v2";
        required set_current: unsafe extern "C" fn(Handle) -> Code = c"cuCtxSetCurrent";
        required load: unsafe extern "C" fn(*mut Handle, *const c_void) -> Code = c"cuModuleLoadData";
        required function: unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> Code = c"cuModuleGetFunction";
        required stream: unsafe extern "C" fn(*mut Handle, c_uint) -> Code = c"cuStreamCreate";
        required alloc: unsafe extern "C" fn(*mut Address, usize) -> Code = c"cuMemAlloc_v2";
        required alloc_host: unsafe extern "C" fn(*mut *mut c_void, usize, c_uint) -> Code = c"cuMemHostAlloc";
        required copy_to: unsafe extern "C" fn(Address, *const c_void, usize, Handle) -> Code = c"cuMemcpyHtoDAsync_v2";
        required copy_back: unsafe extern "C" fn(*mut c_void, Address, usize, Handle) -> Code = c"cuMemcpyDtoHAsync_v2";
        required fill: unsafe extern "C" fn(Address, u8, usize, Handle) -> Code = c"cuMemsetD8Async";
        required launch: Launch = c"cuLaunchKernel";
        required capture: unsafe extern "C" fn(Handle, c_int) -> Code = c"cuStreamBeginCapture_v2";
        required captured: unsafe extern "C" fn(Handle, *mut Handle) -> Code = c"cuStreamEndCapture";
        required instantiate: unsafe extern "C" fn(*mut Handle, Handle, u64) -> Code = c"cuGraphInstantiateWithFlags";
        required launch_graph: unsafe extern "C" fn(Handle, Handle) -> Code = c"cuGraphLaunch";
        required synchronize: unsafe extern "C" fn(Handle) -> Code = c"cuStreamSynchronize";
    }
}

type Launch = unsafe extern "C" fn(
    Handle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Handle,
    *mut *mut c_void,
    *mut *mut c_void,
) -> Code;

/// What the work needs. It is held until the process ends.
pub(super) struct CudaWorkload {
    driver: Driver,
    functions: Functions,
    device: c_int,
    index: u32,
    function: Handle,
    stream: Handle,
    words: Address,
    filled: Address,
    host: *mut c_void,
}

impl CudaWorkload {
    /// Makes everything ready on a device, by its number.
    pub(super) fn prepare(index: u32) -> Result<Self, Refusal> {
        let mut driver = Driver::load()?;
        driver.initialize()?;
        // SAFETY: the types are those of CUDA's headers; the driver keeps the functions of every CUDA before it.
        let functions = unsafe { Functions::find(driver::library()?)? };
        let mut made = Self {
            driver,
            functions,
            device: 0,
            index,
            function: null_mut(),
            stream: null_mut(),
            words: 0,
            filled: 0,
            host: null_mut(),
        };
        made.set_up().map(|()| made)
    }

    fn set_up(&mut self) -> Result<(), Refusal> {
        let f = self.functions;
        let (mut context, mut module) = (null_mut(), null_mut());
        let (text, name) = (zero_ended(KERNEL)?, zero_ended(NAME)?);
        let index = c_int::try_from(self.index).unwrap_or(c_int::MAX);
        let driver = self.driver;
        let check = |code, when| check(driver, code, when);
        // SAFETY: what is written to is writable; texts end with a zero; handles are those that the driver gave.
        unsafe {
            check((f.device)(&mut self.device, index), "the device is asked for")?;
            check((f.retain)(&mut context, self.device), "a context is made")?;
            check((f.set_current)(context), "its context is taken")?;
            check((f.load)(&mut module, text.as_ptr().cast()), "a kernel is compiled")?;
            check((f.function)(&mut self.function, module, name.as_ptr()), "the kernel is looked for")?;
            check((f.stream)(&mut self.stream, NON_BLOCKING), "a stream is made")?;
            check((f.alloc)(&mut self.words, COPIED_TO_BYTES), "memory is asked for")?;
            check((f.alloc)(&mut self.filled, FILLED_BYTES), "memory is asked for")?;
            check((f.alloc_host)(&mut self.host, COPIED_TO_BYTES, 0), "pinned memory is asked for")
        }
    }

    fn check(&self, code: Code, when: &str) -> Result<(), Refusal> {
        check(self.driver, code, when)
    }

    /// Calls a function of the driver's that enqueues work, and remembers when.
    fn enqueue(
        &self,
        call: &'static str,
        works: Vec<Expected>,
        launched: &mut Vec<Launched>,
        enqueue: impl FnOnce() -> Code,
    ) -> Result<(), Refusal> {
        let before_ns = monotonic_ns();
        let code = enqueue();
        launched.push(Launched { call, before_ns, after_ns: monotonic_ns(), works });
        self.check(code, call)
    }

    fn launch(&self, shape: Shape) -> Code {
        let (mut words, mut turns) = (self.words, TURNS);
        let mut arguments: [*mut c_void; 2] = [(&raw mut words).cast(), (&raw mut turns).cast()];
        let ([gx, gy, gz], [bx, by, bz]) = (shape.grid, shape.block);
        // SAFETY: two arguments of the kernel's types, which the driver copies; as many words as threads.
        unsafe {
            let arguments = arguments.as_mut_ptr();
            (self.functions.launch)(self.function, gx, gy, gz, bx, by, bz, 0, self.stream, arguments, null_mut())
        }
    }

    fn graph(&self) -> Result<Handle, Refusal> {
        let f = self.functions;
        let (mut graph, mut executable) = (null_mut(), null_mut());
        // SAFETY: as in `set_up`.
        unsafe {
            self.check((f.capture)(self.stream, RELAXED), "a graph is captured")?;
            let codes = IN_GRAPH.map(|shape| self.launch(shape));
            let end = (f.captured)(self.stream, &mut graph);
            for code in codes.into_iter().chain([end]) {
                self.check(code, "a graph is captured")?;
            }
            self.check((f.instantiate)(&mut executable, graph, 0), "a graph is made")?;
        }
        Ok(executable)
    }

    /// The words that the kernels added to. Nothing may be running.
    fn words_on_host(&self) -> &[u32] {
        // SAFETY: the driver gave that many bytes, and all of them were written before anything was copied.
        unsafe { std::slice::from_raw_parts(self.host.cast(), WORDS) }
    }
}

impl Workload for CudaWorkload {
    fn device(&self) -> (u32, String) {
        let properties = self.driver.devices().into_iter().find(|found| found.index == self.index);
        (self.index, properties.and_then(|found| found.name).unwrap_or_default())
    }

    fn kernel_name(&self) -> &'static str {
        NAME
    }

    fn run(&self) -> Result<Vec<Launched>, Refusal> {
        let f = self.functions;
        let mut launched = Vec::new();
        // SAFETY: the driver gave that many bytes.
        unsafe { self.host.write_bytes(0, COPIED_TO_BYTES) };
        let graph = self.graph()?;
        let to = Expected::Memcpy { direction: Direction::HostToDevice, bytes: COPIED_TO_BYTES as u64 };
        let back = Expected::Memcpy { direction: Direction::DeviceToHost, bytes: COPIED_BACK_BYTES as u64 };
        let fill = Expected::Memset { bytes: FILLED_BYTES as u64 };
        let kernel = |shape: Shape, is_of_graph| Expected::Kernel { grid: shape.grid, block: shape.block, is_of_graph };
        let of_graph = IN_GRAPH.map(|shape| kernel(shape, true)).to_vec();
        // SAFETY: what is copied and filled is as long as said, and lives until the process ends.
        unsafe {
            self.enqueue("cuMemcpyHtoDAsync", vec![to], &mut launched, || {
                (f.copy_to)(self.words, self.host, COPIED_TO_BYTES, self.stream)
            })?;
            self.enqueue("cuMemsetD8Async", vec![fill], &mut launched, || {
                (f.fill)(self.filled, 7, FILLED_BYTES, self.stream)
            })?;
            self.enqueue("cuLaunchKernel", vec![kernel(ALONE, false)], &mut launched, || self.launch(ALONE))?;
            self.enqueue("cuGraphLaunch", of_graph, &mut launched, || (f.launch_graph)(graph, self.stream))?;
            self.enqueue("cuMemcpyDtoHAsync", vec![back], &mut launched, || {
                (f.copy_back)(self.host, self.words, COPIED_BACK_BYTES, self.stream)
            })?;
            self.enqueue("cuStreamSynchronize", vec![], &mut launched, || (f.synchronize)(self.stream))?;
        }
        let threads = |shape: Shape| (shape.grid[0] * shape.block[0]) as usize;
        let is_right = |(at, word): (usize, &u32)| {
            let kernels = [ALONE, IN_GRAPH[0], IN_GRAPH[1]].into_iter().filter(|shape| at < threads(*shape));
            *word == TURNS * kernels.count() as u32
        };
        match self.words_on_host().iter().enumerate().all(is_right) {
            true => Ok(launched),
            false => Err(Refusal("the kernels that try it out computed something else than they should".into())),
        }
    }
}

impl Drop for CudaWorkload {
    fn drop(&mut self) {
        // SAFETY: the context was retained once; with it goes all that was made in it.
        unsafe {
            (self.functions.set_current)(null_mut());
            (self.functions.release)(self.device);
        }
    }
}

fn check(driver: Driver, code: Code, when: &str) -> Result<(), Refusal> {
    match code {
        driver::SUCCESS => Ok(()),
        OUT_OF_MEMORY => Err(Refusal("the GPU has no memory left to try it out".into())),
        _ => Err(Refusal(format!("the NVIDIA driver says \"{}\" when {when}", driver.text_of(code)))),
    }
}

fn zero_ended(text: &str) -> Result<CString, Refusal> {
    CString::new(text).map_err(|_| Refusal("a text with a zero byte".into()))
}
