//! CUDA's driver: what devices the process uses, without making it use any.

use crate::library::functions;
use crate::{DeviceProperties, Library, Refusal};
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::ptr::null;

type Code = c_int;
pub(super) const SUCCESS: Code = 0;

/// Numbers of the driver's attributes.
const WARP_SIZE: c_int = 10;
const SM_COUNT: c_int = 16;
const MAX_THREADS_PER_SM: c_int = 39;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
const SHARED_BYTES_PER_SM: c_int = 81;
const REGISTERS_PER_SM: c_int = 82;

/// Names under which a runtime may be loaded.
const RUNTIMES: [&str; 3] = ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"];

functions! {
    /// The driver's functions.
    struct Functions {
        required init: unsafe extern "C" fn(u32) -> Code = c"cuInit";
        required version: unsafe extern "C" fn(*mut c_int) -> Code = c"cuDriverGetVersion";
        required count: unsafe extern "C" fn(*mut c_int) -> Code = c"cuDeviceGetCount";
        required device: unsafe extern "C" fn(*mut c_int, c_int) -> Code = c"cuDeviceGet";
        required name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Code = c"cuDeviceGetName";
        required memory: unsafe extern "C" fn(*mut usize, c_int) -> Code = c"cuDeviceTotalMem_v2";
        required attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Code = c"cuDeviceGetAttribute";
        required bus_id: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Code = c"cuDeviceGetPCIBusId";
        required context_state: unsafe extern "C" fn(c_int, *mut u32, *mut c_int) -> Code = c"cuDevicePrimaryCtxGetState";
        required error_text: unsafe extern "C" fn(Code, *mut *const c_char) -> Code = c"cuGetErrorString";
    }
}

/// The driver's library.
pub(super) fn library() -> Result<Library, Refusal> {
    Library::load(Path::new("libcuda.so.1"))
        .map_err(|why| Refusal(format!("there is no NVIDIA driver (libcuda.so.1): {why}")))
}

/// The driver.
#[derive(Clone, Copy)]
pub(super) struct Driver {
    functions: Functions,
    /// All devices are told, not only those in use.
    has_unused: bool,
}

impl Driver {
    /// Finds it, without calling it.
    pub(super) fn load() -> Result<Self, Refusal> {
        // SAFETY: the types are those of CUDA's headers; the driver keeps the functions of every CUDA before it.
        let functions = unsafe { Functions::find(library()?)? };
        Ok(Self { functions, has_unused: false })
    }

    /// Has the process use the driver, for somebody who only wants to know.
    pub(super) fn initialize(&mut self) -> Result<(), Refusal> {
        // SAFETY: the flags are always 0.
        let code = unsafe { (self.functions.init)(0) };
        if code != SUCCESS {
            return Err(Refusal(format!("the NVIDIA driver does not start: {}", self.text_of(code))));
        }
        self.has_unused = true;
        Ok(())
    }

    /// The devices of which the process has a context, in the order of their numbers.
    pub(super) fn devices(&self) -> Vec<DeviceProperties> {
        self.in_use().map(|(index, device)| self.properties(index, device)).collect()
    }

    /// Where they are on the bus, by their numbers.
    pub(super) fn bus_ids(&self) -> Vec<(u32, [c_char; 32])> {
        let bus_id = |(index, device)| {
            let mut text = [0; 32];
            // SAFETY: the text is writable, and as long as said.
            let code = unsafe { (self.functions.bus_id)(text.as_mut_ptr(), text.len() as c_int, device) };
            (code == SUCCESS).then_some((index, text))
        };
        self.in_use().filter_map(bus_id).collect()
    }

    /// Numbers and handles. A process that has not begun to use the driver has none: it answers with an error then.
    fn in_use(&self) -> impl Iterator<Item = (u32, c_int)> {
        // SAFETY: the number is writable.
        let count = ask(|count| unsafe { (self.functions.count)(count) }).unwrap_or(0);
        // SAFETY: likewise the handle.
        let handle = |index| ask(|device| unsafe { (self.functions.device)(device, index) });
        let device = move |index| Some((u32::try_from(index).ok()?, handle(index)?));
        (0..count).filter_map(device).filter(|(_, device)| self.has_unused || self.has_context(*device))
    }

    fn has_context(&self, device: c_int) -> bool {
        let (mut flags, mut is_active) = (0, 0);
        // SAFETY: both are writable.
        let code = unsafe { (self.functions.context_state)(device, &mut flags, &mut is_active) };
        code == SUCCESS && is_active != 0
    }

    fn properties(&self, index: u32, device: c_int) -> DeviceProperties {
        // SAFETY: the number is writable.
        let attribute = |which| ask(|value| unsafe { (self.functions.attribute)(value, which, device) });
        let number = |which| attribute(which).and_then(|value| u64::try_from(value).ok());
        let mut name = [0; 256];
        let mut memory = 0;
        // SAFETY: both are writable, and the text is as long as said.
        let (has_name, has_memory) = unsafe {
            let has_name = (self.functions.name)(name.as_mut_ptr(), name.len() as c_int, device) == SUCCESS;
            (has_name, (self.functions.memory)(&mut memory, device) == SUCCESS)
        };
        // SAFETY: the driver wrote a text with its zero.
        let name = has_name.then(|| unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned());
        DeviceProperties {
            kind: "cuda",
            index,
            name,
            memory_bytes: has_memory.then_some(memory as u64),
            sm_count: number(SM_COUNT),
            compute_capability_major: number(MAJOR),
            compute_capability_minor: number(MINOR),
            max_threads_per_sm: number(MAX_THREADS_PER_SM),
            warp_size: number(WARP_SIZE),
            registers_per_sm: number(REGISTERS_PER_SM),
            shared_bytes_per_sm: number(SHARED_BYTES_PER_SM),
            // SAFETY: the number is writable.
            driver_version: ask(|version| unsafe { (self.functions.version)(version) }).map(version_text),
            runtime_version: runtime_version(),
        }
    }

    pub(super) fn text_of(&self, code: Code) -> String {
        let mut text = null();
        // SAFETY: the pointer is writable, and the texts are constants of the driver.
        unsafe {
            match (self.functions.error_text)(code, &mut text) {
                SUCCESS if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
                _ => format!("error {code}"),
            }
        }
    }
}

/// The number that a function writes where it succeeds.
fn ask(function: impl FnOnce(*mut c_int) -> Code) -> Option<c_int> {
    let mut number = 0;
    (function(&mut number) == SUCCESS).then_some(number)
}

/// `13.0` of 13000.
fn version_text(number: c_int) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// That of the runtime that the process has loaded.
fn runtime_version() -> Option<String> {
    let runtime = RUNTIMES.iter().find_map(|name| Library::loaded(Path::new(name)))?;
    // SAFETY: the type that CUDA's headers give it.
    let version = unsafe { runtime.function::<unsafe extern "C" fn(*mut c_int) -> Code>(c"cudaRuntimeGetVersion") }?;
    // SAFETY: the number is writable.
    ask(|number| unsafe { version(number) }).map(version_text)
}
