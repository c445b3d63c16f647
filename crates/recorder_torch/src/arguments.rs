//! What a function of `torch.autograd.Function` is called with. PyTorch passes only its tensors on to callbacks: the
//! others it converts while a profiler of its own is switched on in that thread. Python knows them all.

use std::sync::OnceLock;
use stepscope_recorder::Signature;

/// An argument as torch.profiler shows it; one that it does not show is left out.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// The next of the tensors that PyTorch passes on.
    Tensor,
    /// Shown as nothing.
    Other,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number with a fraction.
    Double(f64),
    /// Its real and its imaginary part.
    Complex(f64, f64),
    /// Numbers, or what is shown as nothing; no tensors and no lists.
    List(Vec<Argument>),
}

/// Gives the arguments of the function that the calling thread is about to call, in order; `None` when it calls none.
pub type ReadArguments = fn() -> Option<Vec<Argument>>;

static READ: OnceLock<ReadArguments> = OnceLock::new();

/// Operators have the name of their library before theirs, functions of Python the name of their class alone.
const OPERATORS_OF_TORCH: &[u8] = b"aten::";

/// Inputs of functions are recorded with what `read` gives. Only the first one counts.
pub fn set_argument_reader(read: ReadArguments) {
    let _ = READ.set(read);
}

/// What the function that begins is called with; `None` when it is no function of Python.
///
/// # Safety
/// `name` is a terminated text.
#[inline(always)]
pub(crate) unsafe fn of_function(name: *const std::ffi::c_char) -> Option<Vec<Argument>> {
    // SAFETY: a byte is read only when those before it are no terminator.
    let is_operator = OPERATORS_OF_TORCH.iter().enumerate().all(|(at, byte)| unsafe { *name.add(at) as u8 } == *byte);
    // SAFETY: the caller's promise.
    if is_operator { None } else { unsafe { of_other(name) } }
}

#[cold]
#[inline(never)]
unsafe fn of_other(name: *const std::ffi::c_char) -> Option<Vec<Argument>> {
    // SAFETY: the caller's promise.
    let name = unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes();
    let is_operator = name.windows(2).any(|two| two == b"::");
    READ.get().filter(|_| !is_operator).and_then(|read| read())
}

/// True when PyTorch passed on those tensors and nothing else.
pub(crate) fn are_tensors(arguments: &[Argument], count: usize) -> bool {
    arguments.iter().filter(|argument| **argument == Argument::Tensor).count() == count
}

/// Puts an argument that is no tensor into `signature`.
pub(crate) fn put(argument: &Argument, signature: &mut Signature) {
    match argument {
        Argument::Tensor | Argument::Other => signature.other(),
        Argument::Bool(value) => signature.bool(*value),
        Argument::Int(value) => signature.int(*value),
        Argument::Double(value) => signature.double(*value),
        Argument::Complex(real, imaginary) => signature.complex(*real, *imaginary),
        Argument::List(items) => {
            signature.scalar_list(items.len());
            items.iter().for_each(|item| put(item, signature));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_no_functions_of_python() {
        set_argument_reader(|| Some(vec![Argument::Int(1)]));
        for (name, is_function) in [
            (c"aten::add", false),
            (c"aten::", false),
            (c"library::operator", false),
            (c"Takes", true),
            (c"atena", true),
            (c"a", true),
            (c"", true),
        ] {
            // SAFETY: a terminated text.
            assert_eq!(unsafe { of_function(name.as_ptr()) }.is_some(), is_function, "{name:?}");
        }
    }

    #[test]
    fn arguments_are_those_whose_tensors_were_passed_on() {
        let arguments = [Argument::Tensor, Argument::Int(1), Argument::Tensor];
        assert!(are_tensors(&arguments, 2));
        assert!(!are_tensors(&arguments, 3));
    }
}
