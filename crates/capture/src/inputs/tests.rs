use super::*;
use proptest::prelude::*;

fn read(signature: &Signature) -> Inputs {
    Inputs::read(&pack(signature.words())).expect("they are whole")
}

/// The one value that is shown of what `put` puts in.
fn shown(put: impl FnOnce(&mut Signature)) -> String {
    let mut signature = Signature::default();
    put(&mut signature);
    read(&signature).concrete
}

/// Writes an input as it was read.
fn put(input: &Input, signature: &mut Signature) {
    match input {
        Input::Other => signature.other(),
        Input::Tensor { dtype, sizes, strides } => signature.tensor(u16::from(*dtype), sizes, strides.as_deref()),
        Input::TensorList(items) => {
            signature.tensor_list(items.len());
            items.iter().for_each(|item| put(item, signature));
        }
        Input::ScalarList(items) => {
            signature.scalar_list(items.len());
            items.iter().for_each(|item| put(item, signature));
        }
        Input::TextList(items) => {
            signature.text_list(items.len());
            items.iter().for_each(|item| put(item, signature));
        }
        Input::Int(value) => signature.int(*value),
        Input::Double(value) => signature.double(*value),
        Input::Bool(value) => signature.bool(*value),
        Input::Complex(real, imaginary) => signature.complex(*real, *imaginary),
        Input::Keyword(name) => signature.keyword(name.as_bytes()),
        Input::Text(text) => signature.text(text.as_bytes()),
    }
}

#[test]
fn inputs_are_shown_as_torch_profiler_shows_them() {
    let mut signature = Signature::default();
    signature.tensor(6, &[64, 3], Some(&[3, 1]));
    signature.other();
    signature.tensor_list(3);
    signature.tensor(15, &[2], Some(&[-1]));
    signature.other();
    signature.tensor(6, &[5], None);
    signature.scalar_list(2);
    signature.int(-1);
    signature.int(1 << 40);
    signature.bool(true);
    signature.scalar_list(0);
    let inputs = read(&signature);
    assert_eq!(inputs.dims, "[[64,3],[],[[2],[],[5]],[],[],[]]");
    assert_eq!(inputs.strides, "[[3,1],[],[[-1],[],[]],[],[],[]]");
    assert_eq!(inputs.types, r#"["float","","TensorList","ScalarList","Scalar","ScalarList"]"#);
    assert_eq!(inputs.concrete, r#"["","","","[-1, 1099511627776]","True","[]"]"#);
    assert_eq!(inputs.keywords, "");
}

/// As PyTorch 2.13 printed them.
#[test]
fn numbers_are_printed_as_pytorch_prints_them() {
    let printed = [
        (0.0, "0."),
        (-0.0, "0."),
        (-3.0, "-3."),
        (1e10, "10000000000."),
        (2_f64.powi(62), "4611686018427387904."),
        (2_f64.powi(63), "9.2233720368547758e+18"),
        (1e300, "1.0000000000000001e+300"),
        (0.0001, "0.0001"),
        (1e-5, "1.0000000000000001e-05"),
        (1.5e-5, "1.5e-05"),
        (5e-324, "4.9406564584124654e-324"),
        (0.1, "0.10000000000000001"),
        (1.0 / 3.0, "0.33333333333333331"),
        (123456.789, "123456.789"),
        (1e10 + 0.5, "10000000000.5"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
        (-f64::NAN, "-nan"),
    ];
    for (value, text) in printed {
        assert_eq!(shown(|signature| signature.double(value)), format!("[\"{text}\"]"), "{value}");
    }
    assert_eq!(shown(|signature| signature.complex(1.5, -0.1)), r#"["1.5-0.10000000000000001j"]"#);
    assert_eq!(shown(|signature| signature.complex(f64::NAN, f64::NAN)), r#"["nan-nanj"]"#);
}

#[test]
fn keywords_are_an_object() {
    let mut signature = Signature::default();
    signature.int(7);
    signature.keyword(b"kernel_file");
    signature.text("a\"\u{1}é.py".as_bytes());
    signature.keyword(b"stream");
    signature.int(0);
    signature.keyword(b"names, eight");
    signature.text_list(2);
    signature.text(b"12345678");
    signature.text(b"");
    signature.keyword(b"no json");
    signature.double(f64::NAN);
    signature.keyword(b"numbers");
    signature.scalar_list(2);
    signature.int(-3);
    signature.complex(1.0, 2.0);
    let inputs = read(&signature);
    let keywords = r#"{"kernel_file":"a\"\u0001é.py","stream":0,"names, eight":["12345678",""],"no json":null,"numbers":[-3,null]}"#;
    assert_eq!((inputs.keywords.as_str(), inputs.concrete.as_str()), (keywords, r#"["7"]"#));
}

#[test]
fn no_inputs_are_empty_texts() {
    assert_eq!(read(&Signature::default()), Inputs::default());
}

#[test]
fn a_signature_without_end_is_told() {
    let mut signature = Signature::default();
    (0..MAX_WORDS).for_each(|_| signature.tensor(6, &[1; 64], None));
    assert!(signature.is_too_long() && signature.words().len() < MAX_WORDS + 100);
}

#[test]
fn what_is_cut_is_refused() {
    let mut signature = Signature::default();
    signature.tensor(6, &[300, 3], Some(&[3, 1]));
    let bytes = pack(signature.words());
    assert!((1..bytes.len()).all(|len| Inputs::read(&bytes[..len]).is_none()));
}

proptest! {
    #[test]
    fn any_words_come_back(words: Vec<u64>) {
        prop_assert_eq!(unpack(&pack(&words)), Some(words));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let read = Inputs::read(&bytes);
        prop_assert!(read.is_none_or(|inputs| inputs.dims.len() <= 4 + bytes.len() * 24));
    }

    /// Heads at random are often whole inputs: writing what was read gives no more words, and reads the same.
    #[test]
    fn what_any_heads_are_read_as_comes_back(
        heads in proptest::collection::vec((0..12_u64, 0..4_u64, any::<bool>()), 0..12)
    ) {
        let head = |(kind, count, flag): &(u64, u64, bool)| kind | u64::from(*flag) << 4 | count << COUNT_SHIFT;
        let words: Vec<u64> = heads.iter().map(head).collect();
        let (shown, inputs) = (Inputs::read(&pack(&words)), Reader::all(&words));
        prop_assert!(inputs.is_some() || shown.is_none());
        if let Some(inputs) = inputs {
            let mut again = Signature::default();
            inputs.iter().for_each(|input| put(input, &mut again));
            prop_assert!(again.words().len() <= words.len());
            prop_assert_eq!(Reader::all(again.words()), Some(inputs));
            prop_assert_eq!(Inputs::read(&pack(again.words())), shown);
        }
    }

    #[test]
    fn tensors_come_back(sizes in proptest::collection::vec(any::<i64>(), 0..9), dtype in 0..128_u16, is_strided: bool) {
        let mut signature = Signature::default();
        let strides: Vec<i64> = sizes.iter().rev().copied().collect();
        signature.tensor(dtype, &sizes, is_strided.then_some(&strides));
        let strides = is_strided.then_some(strides);
        let tensor = Input::Tensor { dtype: dtype as u8, sizes, strides };
        prop_assert_eq!(Reader::all(signature.words()), Some(vec![tensor]));
    }
}
