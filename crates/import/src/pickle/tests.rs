use super::*;

fn read_bytes(bytes: &[u8]) -> (Plain, Result<(), PickleError>) {
    let mut plain = Plain::default();
    let result = read(bytes, &mut plain);
    (plain, result)
}

/// A value as text; what is deeper than a few levels is left out.
fn shown(plain: &Plain, value: Value, depth: usize) -> String {
    let all =
        |values: &[Value]| values.iter().map(|value| shown(plain, *value, depth + 1)).collect::<Vec<_>>().join(" ");
    match value {
        _ if depth > 4 => "…".into(),
        Value::List(id) => format!("[{}]", all(plain.list(id))),
        Value::Dict(id) => {
            let pairs = plain.dict(id).iter();
            let pairs =
                pairs.map(|(key, value)| shown(plain, *key, depth + 1) + ":" + &shown(plain, *value, depth + 1));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(" "))
        }
        value => plain.shown(value).unwrap_or_else(|| Plain::kind(value).into()),
    }
}

fn check(bytes: &[u8], expected: &str) {
    let (plain, result) = read_bytes(bytes);
    assert_eq!(result, Ok(()), "{bytes:x?}");
    assert_eq!(shown(&plain, plain.root.expect("a value"), 0), expected, "{bytes:x?}");
}

fn damage(bytes: &[u8], expected: &str) {
    match read_bytes(bytes).1 {
        Err(PickleError::Damaged { at_byte, found }) => {
            assert_eq!(format!("{found} at {at_byte}"), expected, "{bytes:x?}")
        }
        other => panic!("{bytes:x?}: {other:?}"),
    }
}

#[test]
fn plain_values_of_every_width() {
    check(b"\x80\x04K\x05.", "5");
    check(b"\x80\x04M\x05\x01.", "261");
    check(b"\x80\x04J\xff\xff\xff\xff.", "-1");
    check(b"\x80\x04\x8a\x00.", "0");
    check(b"\x80\x04\x8a\x05\x00\x00\x00\x00\x01.", "4294967296");
    check(b"\x80\x04\x8a\x08\xff\xff\xff\xff\xff\xff\xff\xff.", "-1");
    check(b"\x80\x04\x8b\x02\x00\x00\x00\x00\x80.", "-32768");
    check(b"\x80\x04\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", "an object that is no plain data");
    check(b"\x80\x04G\x3f\xe8\x00\x00\x00\x00\x00\x00.", "0.75");
    check(b"\x80\x04(N\x88\x89t.", "[None True False]");
    check(b"\x80\x04\x8c\x02ab.", "ab");
    check(b"\x80\x04X\x02\x00\x00\x00ab.", "ab");
    check(b"\x80\x04\x8d\x02\x00\x00\x00\x00\x00\x00\x00ab.", "ab");
    check(b"\x80\x04C\x02ab.", "an object that is no plain data");
}

#[test]
fn lists_and_dicts_however_they_are_put_together() {
    check(b"\x80\x04]K\x01a.", "[1]");
    check(b"\x80\x04](K\x01K\x02e.", "[1 2]");
    check(b"\x80\x04(K\x01K\x02l.", "[1 2]");
    check(b"\x80\x04K\x01K\x02K\x03\x87.", "[1 2 3]");
    check(b"\x80\x04)\x85.", "[[]]");
    check(b"\x80\x04}\x8c\x01aK\x01s.", "{a:1}");
    check(b"\x80\x04}(\x8c\x01aK\x01\x8c\x01b]u.", "{a:1 b:[]}");
    check(b"\x80\x04(\x8c\x01aK\x01d.", "{a:1}");
    check(b"\x80\x04K\x01K\x020.", "1");
    check(b"\x80\x04K\x01(K\x02K\x031.", "1");
}

#[test]
fn what_is_named_twice_is_one() {
    // A list is remembered, referred to a second time, and then filled.
    check(b"\x80\x04]\x94h\x00K\x07a\x86.", "[[7] [7]]");
    check(b"\x80\x04]q\x05j\x05\x00\x00\x00K\x07a\x86.", "[[7] [7]]");
    check(b"\x80\x04]2K\x07a\x86.", "[[7] [7]]");
}

#[test]
fn of_objects_nothing_is_made() {
    let evil = b"\x80\x04cos\nsystem\n\x8c\x04ruin\x85R.";
    let (plain, result) = read_bytes(evil);
    assert_eq!((result, plain.root), (Ok(()), Some(Value::Other)));
    assert_eq!((plain.foreign_names.as_slice(), plain.foreign_count), (["os.system".to_string()].as_slice(), 1));
    // With its state and its items; by names on the stack; from the oldest protocol.
    check(b"\x80\x04](\x8c\x01a\x8c\x01b\x93)\x81}b\x8c\x01kK\x01sK\x05e.", "[an object that is no plain data 5]");
    check(b"\x80\x02(ia\nb\n.", "an object that is no plain data");
    check(b"\x80\x04\x8f(K\x01\x90.", "an object that is no plain data");
}

#[test]
fn damage_is_told_with_its_place() {
    damage(b"\x80\x04\xff.", "the byte 0xff, which is no instruction of a pickle at 2");
    damage(b"\x80\x04.", "an instruction for values that are not there at 2");
    damage(b"\x80\x04K\x01s.", "an instruction for values that are not there at 4");
    damage(b"\x80\x04h\x05.", "a reference to 5, which stands for nothing at 2");
    damage(b"\x80\x04K\x01K\x02a.", "items that are added to an integer at 6");
    damage(b"\x80\x04K\x01(K\x02K\x03u.", "keys that are added to an integer at 9");
    damage(b"\x80\x04X\xff\xff\xff\xff", "a text of 4294967295 bytes at 2");
    damage(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "a text of 18446744073709551615 bytes at 2");
}

#[test]
fn a_pickle_that_is_cut_gives_what_was_in_the_making() {
    let whole = b"\x80\x04}(\x8c\x01a](K\x01K\x02e\x8c\x01b](K\x03K\x04eu.";
    let cut_at = |len: usize| {
        let (plain, result) = read_bytes(&whole[..len]);
        assert_eq!(result, Err(PickleError::Cut { at_byte: len as u64, reason: None }), "{len}");
        plain.root.map_or("nothing".into(), |root| shown(&plain, root, 0))
    };
    assert_eq!(cut_at(0), "nothing");
    assert_eq!(cut_at(whole.len() - 1), "{a:[1 2] b:[3 4]}");
    assert_eq!(cut_at(whole.len() - 3), "{a:[1 2] b:[3 4]}");
    assert_eq!(cut_at(whole.len() - 5), "{a:[1 2] b:[3]}");
    // An only item is not in its list yet.
    let (plain, _) = read_bytes(b"\x80\x04}(\x8c\x01a]](K\x01K\x02");
    assert_eq!(shown(&plain, plain.root.unwrap(), 0), "{a:[[1 2]]}");
}

#[test]
fn what_refers_to_itself_takes_no_more_than_its_length() {
    // Each list has the one before it ten times: written out it would be 10^200 items.
    let mut bomb = b"\x80\x04]\x94".to_vec();
    for level in 0..200_u8 {
        bomb.push(b'(');
        (0..10).for_each(|_| bomb.extend([b'h', level]));
        bomb.extend(b"l\x94");
    }
    bomb.push(b'.');
    let (plain, result) = read_bytes(&bomb);
    assert_eq!((result, plain.list_count()), (Ok(()), 201));
    // A list in itself, and lists within lists, deeper than any stack.
    check(b"\x80\x04]\x94h\x00a.", "[[[[[…]]]]]");
    let deep = [b"\x80\x04".as_slice(), &vec![b']'; 300_000], &vec![b'a'; 299_999], b"."].concat();
    assert_eq!(read_bytes(&deep).0.list_count(), 300_000);
}

#[test]
fn memory_has_a_limit() {
    let many = [b"\x80\x04(".as_slice(), &vec![b'}'; 1_000_000], b"l."].concat();
    let mut plain = Plain::default();
    let result = read_within(many.as_slice(), &mut plain, 8 << 20);
    let Err(PickleError::Damaged { found, .. }) = result else { panic!("{result:?}") };
    assert_eq!(found, "more data than fits into 8 MiB of memory");
    assert!(plain.dict_count() < 300_000, "{}", plain.dict_count());
}

#[test]
fn texts_that_are_no_utf_8_are_repaired() {
    let (plain, result) = read_bytes(b"\x80\x04\x8c\x03a\xffb.");
    assert_eq!((result, plain.repaired_texts), (Ok(()), 1));
    assert_eq!(shown(&plain, plain.root.unwrap(), 0), "a\u{fffd}b");
}
