//! Reads what an op is called with from PyTorch's objects, at the places that a probe has proven.
//!
//! Nothing is called, copied or kept: sizes and strides are read where the tensor has them.

pub(crate) mod probe;
pub(crate) mod solve;

use crate::arguments::{self, Argument};
use crate::solve::Layout;
use solve::{InputsLayout, Kind, VALUE_BYTES};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use stepscope_recorder::Signature;

/// torch.profiler shows no longer lists of scalars either.
pub const MAX_SCALARS: usize = 30;
/// No tensor has more.
const MAX_DIMS: usize = 4096;
const MAX_KEYWORDS: usize = 64;
const MAX_TEXT_BYTES: usize = 4096;
/// Longer texts do not stand inside a `std::string`.
const INNER_TEXT_BYTES: usize = 15;

/// False once a keyword was not where this C++ library has them: no more are looked for.
static HAS_KEYWORDS: AtomicBool = AtomicBool::new(true);

/// `aoti_torch_get_layout(tensor, *layout)`.
pub(crate) type LayoutFn = unsafe extern "C" fn(*const c_void, *mut i32) -> i32;

/// Where everything is.
#[derive(Clone, Copy)]
pub(crate) struct InputsReader {
    pub(crate) layout: InputsLayout,
    /// Address of the one undefined tensor.
    pub(crate) undefined: usize,
    /// Tells strided tensors among those of a class of their own; without it their strides are not read.
    pub(crate) get_layout: Option<LayoutFn>,
}

impl InputsReader {
    /// Puts the inputs of the range that begins into `signature`; of a function of Python those that its `arguments`
    /// show.
    ///
    /// # Safety
    /// `function` is the live object of the probed class that PyTorch passes to a start callback.
    #[inline(always)]
    pub(crate) unsafe fn put(
        &self,
        function: *const u8,
        layout: &Layout,
        arguments: Option<&[Argument]>,
        signature: &mut Signature,
    ) {
        // SAFETY: the probe proved where the inputs stand; they live during the callback.
        unsafe {
            let values = function.add(layout.inputs).cast::<*const u8>().read();
            let count = function.add(layout.inputs + 8).cast::<usize>().read();
            match arguments.filter(|arguments| arguments::are_tensors(arguments, count)) {
                Some(arguments) => self.put_arguments(arguments, values, signature),
                None => (0..count).for_each(|at| self.put_value(values.add(at * VALUE_BYTES), signature)),
            }
            if let Some(keywords) = self.layout.keywords {
                let keywords = function.add(keywords);
                if keywords.add(24).cast::<usize>().read() > 0 {
                    self.put_keywords(keywords, signature);
                }
            }
        }
    }

    /// Puts arguments; the tensors among them are the `values`, in order.
    #[cold]
    #[inline(never)]
    unsafe fn put_arguments(&self, arguments: &[Argument], mut values: *const u8, signature: &mut Signature) {
        for argument in arguments {
            if *argument != Argument::Tensor {
                arguments::put(argument, signature);
                continue;
            }
            // SAFETY: there are as many values as tensors.
            unsafe {
                self.put_value(values, signature);
                values = values.add(VALUE_BYTES);
            }
        }
    }

    #[inline(always)]
    unsafe fn put_value(&self, value: *const u8, signature: &mut Signature) {
        // SAFETY: the caller's value is a live IValue.
        unsafe {
            match self.kind(value) {
                Kind::Tensor => self.put_tensor(value, signature),
                Kind::List => self.put_list(value, signature),
                kind => self.put_scalar(kind, value, signature),
            }
        }
    }

    #[inline(always)]
    unsafe fn kind(&self, value: *const u8) -> Kind {
        // SAFETY: as above.
        let tag = unsafe { value.add(8).cast::<u32>().read() };
        self.layout.kinds.get(tag as usize).copied().unwrap_or(Kind::Other)
    }

    #[inline(always)]
    unsafe fn put_scalar(&self, kind: Kind, value: *const u8, signature: &mut Signature) {
        // SAFETY: as above; the payload of each kind is what the probe saw.
        unsafe {
            match kind {
                Kind::Int => signature.int(value.cast::<i64>().read()),
                Kind::Double => signature.double(value.cast::<f64>().read()),
                Kind::Bool => signature.bool(value.read() != 0),
                Kind::Complex => {
                    let number = value.cast::<*const u8>().read().add(self.layout.complex_value).cast::<f64>();
                    signature.complex(number.read(), number.add(1).read());
                }
                Kind::Other | Kind::Tensor | Kind::List | Kind::Text => signature.other(),
            }
        }
    }

    /// Sizes are read where they stand; tensors whose sizes only a function can tell (nested, symbolic, of a Python
    /// class that says so) are shown as nothing.
    #[inline(always)]
    unsafe fn put_tensor(&self, value: *const u8, signature: &mut Signature) {
        // SAFETY: a live tensor of the probed class; the probe proved the places.
        unsafe {
            let tensor = value.cast::<*const u8>().read();
            if tensor.is_null() || tensor as usize == self.undefined {
                return signature.other();
            }
            let sizes = tensor.add(self.layout.sizes);
            let dims = sizes.cast::<usize>().read();
            let policy = tensor.add(self.layout.policy_bit / 8).read() >> (self.layout.policy_bit % 8) & 3;
            if policy > 1 || dims > MAX_DIMS {
                return signature.other();
            }
            let dtype = tensor.add(self.layout.dtype).cast::<u16>().read();
            let inner = sizes.add(8);
            let (sizes, strides) = if dims <= solve::INNER_DIMS {
                (inner.cast::<i64>(), inner.cast::<i64>().add(solve::INNER_DIMS))
            } else {
                let outer = inner.cast::<*const i64>().read();
                (outer, outer.add(dims))
            };
            let sizes = std::slice::from_raw_parts(sizes, dims);
            let has_strides = policy == 0 || self.is_strided(tensor, value);
            signature.tensor(dtype, sizes, has_strides.then(|| std::slice::from_raw_parts(strides, dims)));
        }
    }

    /// True for a tensor of a class of its own that has strides nevertheless. Plain ones only come here when they ask
    /// Python for them.
    #[cold]
    #[inline(never)]
    unsafe fn is_strided(&self, tensor: *const u8, value: *const u8) -> bool {
        const STRIDED: i32 = 0;
        let mut layout = -1;
        // SAFETY: a handle is the address of a tensor's pointer, with which the value begins.
        unsafe {
            tensor.cast::<usize>().read() != self.layout.plain_class
                && self.get_layout.is_some_and(|get_layout| get_layout(value.cast(), &raw mut layout) == 0)
                && layout == STRIDED
        }
    }

    #[inline(always)]
    unsafe fn put_list(&self, value: *const u8, signature: &mut Signature) {
        // SAFETY: a live list object of the probed layout.
        unsafe {
            let (items, count, item_type) = self.items(value);
            if item_type == self.layout.tensor_type {
                signature.tensor_list(count);
                for at in 0..count {
                    if signature.is_too_long() {
                        return;
                    }
                    let item = items.add(at * VALUE_BYTES);
                    if self.kind(item) == Kind::Tensor { self.put_tensor(item, signature) } else { signature.other() }
                }
                return;
            }
            let is_scalar = |kind| matches!(kind, Kind::Int | Kind::Double | Kind::Bool | Kind::Complex);
            if count > MAX_SCALARS || count > 0 && !is_scalar(self.kind(items)) {
                return signature.other();
            }
            signature.scalar_list(count);
            for at in 0..count {
                let item = items.add(at * VALUE_BYTES);
                self.put_scalar(self.kind(item), item, signature);
            }
        }
    }

    /// A list's first item, how many there are, and what stands for their type.
    #[inline(always)]
    unsafe fn items(&self, value: *const u8) -> (*const u8, usize, usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let list = value.cast::<*const u8>().read().add(self.layout.list_items).cast::<usize>();
            let (begin, end) = (list.read(), list.add(1).read());
            (begin as *const u8, end.saturating_sub(begin) / VALUE_BYTES, list.add(3).read())
        }
    }

    /// The keywords of a range, in a `std::unordered_map<std::string, IValue>`: what stands in its nodes is proven by
    /// the short keys, whose text is inside them.
    #[cold]
    #[inline(never)]
    unsafe fn put_keywords(&self, map: *const u8, signature: &mut Signature) {
        if !HAS_KEYWORDS.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: the map lives during the callback; nodes are followed as far as their keys prove themselves.
        unsafe {
            let mut node = map.add(16).cast::<*const u8>().read();
            for _ in 0..MAX_KEYWORDS {
                if node.is_null() {
                    return;
                }
                let (text, len) = (node.add(8).cast::<usize>().read(), node.add(16).cast::<usize>().read());
                let is_inside = text == node as usize + 24;
                if is_inside != (len <= INNER_TEXT_BYTES) || len > MAX_TEXT_BYTES {
                    return HAS_KEYWORDS.store(false, Ordering::Relaxed);
                }
                let key = std::slice::from_raw_parts(text as *const u8, len);
                self.put_keyword(key, node.add(40), signature);
                node = node.cast::<*const u8>().read();
            }
        }
    }

    /// Numbers, truth values, texts and lists of texts, as torch.profiler shows them; nothing else.
    unsafe fn put_keyword(&self, key: &[u8], value: *const u8, signature: &mut Signature) {
        // SAFETY: a live value.
        unsafe {
            match self.kind(value) {
                kind @ (Kind::Int | Kind::Double | Kind::Bool) => {
                    signature.keyword(key);
                    self.put_scalar(kind, value, signature);
                }
                Kind::Text => {
                    if let Some(text) = self.text(value) {
                        signature.keyword(key);
                        signature.text(text);
                    }
                }
                Kind::List => {
                    let (items, count, _) = self.items(value);
                    let texts: Option<Vec<&[u8]>> =
                        (0..count.min(MAX_KEYWORDS)).map(|at| self.text(items.add(at * VALUE_BYTES))).collect();
                    if let Some(texts) = texts.filter(|texts| !texts.is_empty()) {
                        signature.keyword(key);
                        signature.text_list(texts.len());
                        texts.into_iter().for_each(|text| signature.text(text));
                    }
                }
                Kind::Other | Kind::Tensor | Kind::Complex => {}
            }
        }
    }

    unsafe fn text<'a>(&self, value: *const u8) -> Option<&'a [u8]> {
        // SAFETY: a live value; a text's object is what the probe saw.
        unsafe {
            if self.kind(value) != Kind::Text {
                return None;
            }
            let text = value.cast::<*const u8>().read().add(self.layout.text_value?).cast::<usize>();
            let (begin, len) = (text.read() as *const u8, text.add(1).read());
            Some(std::slice::from_raw_parts(begin, len.min(MAX_TEXT_BYTES)))
        }
    }
}
