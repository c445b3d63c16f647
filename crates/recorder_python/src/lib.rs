//! `stepscope._recorder`: what a recorded Python process loads. Thin: each function converts and calls.
//!
//! Nothing here raises into a training loop: only opening a capture and probing PyTorch can fail, and the Python side
//! turns those failures into a message.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod annotation;
mod arguments;
mod class;
mod collections;
mod cpython;
mod described;
mod device;
mod files;
mod function_names;
mod label;
mod layout;
mod modules;
mod own_thread;
mod record_function;
mod stack_samples;
mod stacks;

#[pyo3::pymodule]
mod _recorder {
    #[pymodule_export]
    use super::annotation::make_annotate;
    #[pymodule_export]
    use super::arguments::read_arguments_of;
    #[pymodule_export]
    use super::collections::on_collection;
    #[pymodule_export]
    use super::described::{describe, innermost};
    #[pymodule_export]
    use super::device::{device_find, device_flush, device_start, device_stop, device_try, run_limited};
    #[pymodule_export]
    use super::label::{are_labels_wanted, has_other_listeners, pass_labels_on, set_labels};
    #[pymodule_export]
    use super::modules::{forget_module, module_calls, name_module};
    #[pymodule_export]
    use super::own_thread::call_on_new_thread;
    #[pymodule_export]
    use super::record_function::make_record_function;
    #[pymodule_export]
    use super::stack_samples::{look_at_frames, start_stack_samples, stop_stack_samples};
    #[pymodule_export]
    use super::stacks::{hide, show, start_stacks, stop_stacks};
    use pyo3::exceptions::{PyImportError, PyOSError, PyRuntimeError};
    use pyo3::prelude::*;
    use pyo3::types::PyString;
    use std::borrow::Cow;
    use std::collections::HashMap;
    use std::path::PathBuf;
    use std::time::Duration;
    use stepscope_recorder as recorder;
    use stepscope_recorder_torch as torch;

    /// What is followed here is a process's, and PyTorch is of its main interpreter: no other may load this.
    #[pymodule_init]
    fn check_interpreter(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        // SAFETY: a module is loaded with the interpreter's lock held.
        let interpreter = unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) };
        match interpreter {
            0 => Ok(()),
            _ => Err(PyImportError::new_err("stepscope records the main interpreter only, not sub-interpreters")),
        }
    }

    /// Opens this process's capture below the run folder; gives (path of the capture, whether it is new).
    /// With `ring_ns` only that much of the past is kept.
    #[pyfunction]
    #[pyo3(signature = (run, facts, ring_ns = 0))]
    fn open(run: PathBuf, facts: HashMap<String, String>, ring_ns: u64) -> PyResult<(PathBuf, bool)> {
        let facts: Vec<(String, String)> = facts.into_iter().collect();
        facts.iter().for_each(|(key, value)| super::files::set_metadata(key, value));
        let ring = (ring_ns > 0).then(|| Duration::from_nanos(ring_ns));
        let opened = recorder::open_ring(&run, &facts, ring).map_err(PyOSError::new_err)?;
        Ok((opened.path, opened.is_new))
    }

    /// Closes the capture, when one is open.
    #[pyfunction]
    fn close(py: Python<'_>) {
        py.detach(recorder::close);
    }

    /// True while a capture is open.
    #[pyfunction]
    fn is_open() -> bool {
        recorder::is_open()
    }

    /// The last thing that went wrong where nobody could be told.
    #[pyfunction]
    fn last_error() -> Option<String> {
        recorder::last_error()
    }

    /// Records a metadata entry of the process.
    #[pyfunction]
    fn set_fact(key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
        let (key, value) = (text(key), text(value));
        super::files::set_metadata(&key, &value);
        recorder::set_metadata(&key, &value);
    }

    /// Records a metadata entry of this process alone, and not of those that it forks.
    #[pyfunction]
    fn set_own_fact(key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) {
        recorder::set_own_metadata(&text(key), &text(value));
    }

    /// Records calls on files below the run folder, by the library at that path, but for those in the folders `left_out`
    /// unless the environment chooses others; False where they are recorded already. Unless `ring_ns` is 0, only that much
    /// of the past is kept.
    #[pyfunction]
    fn start_files(
        py: Python<'_>,
        library: PathBuf,
        run: PathBuf,
        left_out: Vec<PathBuf>,
        ring_ns: u64,
    ) -> PyResult<bool> {
        py.detach(|| super::files::start(&library, &run, &left_out, ring_ns)).map_err(PyOSError::new_err)
    }

    /// Tells the library that records calls on files a metadata entry of the process.
    #[pyfunction]
    fn set_file_fact(key: &str, value: &str) {
        super::files::set_metadata(key, value);
    }

    /// Records them no longer, where `start_files` began to.
    #[pyfunction]
    fn stop_files(py: Python<'_>) {
        py.detach(super::files::stop);
    }

    /// Rank, sizes and node as the launcher's variables have them; `value_of` gives a variable's value.
    #[pyfunction]
    fn launcher_facts(value_of: &Bound<'_, PyAny>) -> HashMap<&'static str, u32> {
        // A value that is no text is no number.
        let value_of = |variable: &str| value_of.call1((variable,)).ok()?.extract::<Option<String>>().ok()?;
        recorder::launcher_facts(value_of).into_iter().collect()
    }

    /// Names the calling thread.
    #[pyfunction]
    fn name_thread(name: &Bound<'_, PyAny>) {
        recorder::name_thread(&text(name));
        // The thread may free memory before it runs an op.
        torch::attend_thread();
    }

    /// A label begins; gives the token that ends it.
    #[pyfunction]
    fn begin_label(name: &Bound<'_, PyAny>) -> usize {
        recorder::begin_label(&text(name))
    }

    /// A label ends.
    #[pyfunction]
    fn end_label(token: usize, name: &Bound<'_, PyAny>) {
        recorder::end_label(token, &text(name));
    }

    /// A step begins on the calling thread.
    #[pyfunction]
    fn step_begin(number: i64) {
        recorder::step_begin(number);
    }

    /// A step ends on the calling thread.
    #[pyfunction]
    fn step_end(number: i64) {
        recorder::step_end(number);
    }

    /// The step that is open on the calling thread is none.
    #[pyfunction]
    fn step_drop() {
        recorder::step_drop();
    }

    /// An optimizer has just stepped on the calling thread, which ends step `number`.
    #[pyfunction]
    fn mark_step(number: i64) {
        recorder::mark_step(number);
    }

    /// Keeps what is in the ring; false without one.
    #[pyfunction]
    fn keep(because: &Bound<'_, PyAny>) -> bool {
        recorder::snapshot(&text(because))
    }

    /// Keeps what is in the ring whenever this process gets a signal.
    #[pyfunction]
    fn keep_on_signal(signal: i32) {
        recorder::snapshot_on_signal(signal);
    }

    /// Tells forked processes whether to record now, and in which cycle.
    #[pyfunction]
    fn tell_children(is_on: bool, cycle: u64) {
        recorder::publish_to_children(is_on, cycle);
    }

    /// Whether the process that this one was forked from records now, and in which cycle; None where it does not say.
    #[pyfunction]
    fn window_of_parent() -> Option<(bool, u64)> {
        recorder::parent_window()
    }

    /// A schedule switched recording.
    #[pyfunction]
    fn set_window(is_on: bool, cycle: u64) {
        recorder::set_window(is_on, cycle);
    }

    /// Begins to watch the calling thread's ops; see `probe_end`.
    #[pyfunction]
    fn probe_begin(torch_lib: PathBuf) -> PyResult<()> {
        torch::probe_begin(&torch_lib).map_err(refused)
    }

    /// Ends the watch; gives the offsets found, by field.
    #[pyfunction]
    fn probe_end(
        op: &str,
        sequence_numbers: Vec<i64>,
        range: &str,
        release: &str,
    ) -> PyResult<HashMap<&'static str, usize>> {
        let layout = torch::probe_end(op, &sequence_numbers, range, release).map_err(refused)?;
        Ok(HashMap::from([
            ("sequence_number", layout.sequence_number),
            ("scope", layout.scope),
            ("thread", layout.thread),
            ("forward_thread", layout.forward_thread),
            ("inputs", layout.inputs),
        ]))
    }

    /// Ends a watch whose ops did not run to the end.
    #[pyfunction]
    fn probe_cancel() {
        torch::probe_cancel();
    }

    /// Begins to watch the calling thread's ops for their inputs; see `probe_inputs_end`.
    #[pyfunction]
    fn probe_inputs_begin() -> PyResult<()> {
        torch::inputs_probe_begin().map_err(refused)
    }

    /// Address, sizes, strides, scalar type, what it is.
    type KnownTensor = (usize, Vec<i64>, Vec<i64>, String, String);

    /// Ends the watch, given tensors as (address, sizes, strides, scalar type, what it is).
    #[pyfunction]
    fn probe_inputs_end(torch_lib: PathBuf, tensors: Vec<KnownTensor>) -> PyResult<()> {
        let known =
            |(address, sizes, strides, dtype, what)| torch::KnownTensor { address, sizes, strides, dtype, what };
        let tensors: Vec<torch::KnownTensor> = tensors.into_iter().map(known).collect();
        torch::inputs_probe_end(&torch_lib, &tensors).map_err(refused)
    }

    /// Ends a watch of inputs whose ops did not run to the end.
    #[pyfunction]
    fn probe_inputs_cancel() {
        torch::inputs_probe_cancel();
    }

    /// Records ops from now on, on all threads; with `shapes` also what they are called with.
    #[pyfunction]
    #[pyo3(signature = (shapes = false))]
    fn hook(shapes: bool) -> PyResult<()> {
        torch::hook(shapes).map_err(refused)
    }

    /// Records ops no longer.
    #[pyfunction]
    fn unhook() {
        torch::unhook();
    }

    /// Records the numbers that PyTorch gives to ranges, as execution traces have them, or no longer.
    #[pyfunction]
    fn want_numbers(are_wanted: bool) {
        torch::want_numbers(are_wanted);
    }

    /// True while ops are recorded.
    #[pyfunction]
    fn is_hooked() -> bool {
        torch::is_hooked()
    }

    /// Proves that others' callbacks can be counted: labels are then passed on while there are some.
    #[pyfunction]
    fn probe_listeners(torch_lib: PathBuf) -> PyResult<()> {
        torch::probe_listeners(&torch_lib).map_err(refused)
    }

    /// Proves that memory and ranges of compiled code can be recorded.
    #[pyfunction]
    fn probe_state(torch_lib: PathBuf) -> PyResult<()> {
        torch::probe_state(&torch_lib).map_err(refused)
    }

    /// Records ranges of compiled code from now on, on all threads, and allocations when they are wanted.
    #[pyfunction]
    fn start_state(has_memory: bool) -> PyResult<()> {
        torch::start_state(has_memory).map_err(refused)
    }

    /// Records neither any longer.
    #[pyfunction]
    fn stop_state() {
        torch::stop_state();
    }

    /// Gives the calling thread a profiler state of its own, and its number; 0 where that cannot be. What other threads
    /// do for it is recorded with that number.
    #[pyfunction]
    fn enter_state() -> u64 {
        torch::enter_state()
    }

    /// Ends what the last `enter_state` began that gave a number.
    #[pyfunction]
    fn leave_state() {
        torch::leave_state();
    }

    /// True when PyTorch's profiler state of the calling thread is ours.
    #[pyfunction]
    fn is_attending() -> bool {
        torch::is_attending()
    }

    /// Leaves the calling thread's profiler state to others, until `step_back`.
    #[pyfunction]
    fn step_aside() {
        torch::step_aside();
    }

    /// Ends what the last `step_aside` began.
    #[pyfunction]
    fn step_back() {
        torch::step_back();
    }

    /// Another profiler has started on the calling thread: what it sees begin has to end before our state comes back.
    #[pyfunction]
    fn others_begin() {
        torch::others_begin();
    }

    /// It has stopped.
    #[pyfunction]
    fn others_end() {
        torch::others_end();
    }

    /// Begins to watch the calling thread's next op; see `prove_tensors_end`.
    #[pyfunction]
    fn prove_tensors_begin() -> PyResult<()> {
        torch::prove_tensors_begin().map_err(refused)
    }

    /// Ends the watch of an op of a known tensor: of collectives' tensors, sizes are recorded from now on.
    #[pyfunction]
    fn prove_tensors_end(torch_lib: PathBuf, tensor: u64, numel: i64, dtype: i32) -> PyResult<()> {
        torch::prove_tensors_end(&torch_lib, tensor, numel, dtype).map_err(refused)
    }

    /// Finds out how PyTorch keeps what collectives announce.
    #[pyfunction]
    fn probe_collectives(torch_lib: PathBuf) -> PyResult<()> {
        torch::probe_collectives(&torch_lib).map(drop).map_err(refused)
    }

    /// Says which group ranges like `gloo:all_reduce` belong to: keys and values, and how many collectives it has had,
    /// where they can be counted; without one, their group is not known.
    #[pyfunction]
    #[pyo3(signature = (facts=None, sequence_number=None))]
    fn set_labelled_group(facts: Option<Vec<(String, String)>>, sequence_number: Option<i64>) {
        torch::set_labelled_group(facts.map(|facts| (described(&facts), sequence_number)));
    }

    /// True where PyTorch's own profiler was ever used in this process; None where it does not tell.
    #[pyfunction]
    fn is_kineto_used(torch_lib: PathBuf) -> Option<bool> {
        torch::is_kineto_used(&torch_lib)
    }

    /// Counts the collectives of these groups of Gloo's: the object of each one's backend, which lives until others are
    /// given, and keys and values.
    #[pyfunction]
    fn set_gloo_groups(torch_lib: PathBuf, groups: Vec<(Bound<'_, PyAny>, KeysAndValues)>) -> PyResult<bool> {
        let groups = groups.iter().map(|(backend, facts)| (backend.as_ptr() as usize, described(facts)));
        torch::set_gloo_groups(&torch_lib, groups.collect()).map_err(refused)
    }

    type KeysAndValues = Vec<(String, String)>;

    /// What is said of a group, as a capture stores it.
    fn described(facts: &[(String, String)]) -> String {
        recorder::collectives::describe(facts.iter().map(|(key, value)| (key.as_str(), value.clone())))
    }

    /// Samples the process's memory and CPU time from now on; where `are_of_host`, the machine, too.
    #[pyfunction]
    fn start_counters(are_of_host: bool) {
        recorder::start_counters(are_of_host);
    }

    /// Samples no longer.
    #[pyfunction]
    fn stop_counters() {
        recorder::stop_counters();
    }

    /// Text as Python has it: halves of surrogate pairs (undecodable file names) are replaced, anything but text is
    /// empty. Names must never raise into the program.
    fn text<'a>(object: &'a Bound<'_, PyAny>) -> Cow<'a, str> {
        object.cast::<PyString>().map_or(Cow::Borrowed(""), |text| text.to_string_lossy())
    }

    fn refused(refusal: torch::Refusal) -> PyErr {
        PyRuntimeError::new_err(refusal.to_string())
    }
}
