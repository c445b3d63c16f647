//! Every target over its seeds, whole and damaged. What libFuzzer found lies among the seeds.

use proptest::prelude::*;
use stepscope_fuzz::{TARGETS, seeds};

/// Texts that mean something to a reader.
const WORDS: [&[u8]; 16] = [
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\\",
    b"null",
    b"-1",
    b"NaN",
    b"1e308",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"0.0005",
    b"\xff",
    b"\n",
];

/// One kind of damage; places are per mille of the input.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Byte(usize, u8),
    Word(usize, usize),
    Remove(usize, usize),
    Repeat(usize, usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = 0..1_000_usize;
    prop_oneof![
        1 => at.clone().prop_map(Damage::Cut),
        4 => (0..100_000_usize, any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        4 => (0..100_000_usize, 0..WORDS.len()).prop_map(|(at, word)| Damage::Word(at, word)),
        1 => (at.clone(), at.clone()).prop_map(|(from, to)| Damage::Remove(from.min(to), from.max(to))),
        1 => (at.clone(), at.clone(), at).prop_map(|(from, to, at)| Damage::Repeat(from.min(to), from.max(to), at)),
    ]
}

fn damaged(mut bytes: Vec<u8>, damage: &Damage) -> Vec<u8> {
    let place = |per_mille: usize| bytes.len() * per_mille / 1_000;
    match *damage {
        Damage::Cut(at) => bytes.truncate(place(at)),
        Damage::Byte(at, byte) if !bytes.is_empty() => {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        Damage::Word(at, word) => {
            let at = at % (bytes.len() + 1);
            bytes.splice(at..at, WORDS[word].iter().copied());
        }
        Damage::Remove(from, to) => drop(bytes.drain(place(from)..place(to))),
        Damage::Repeat(from, to, at) => {
            let (part, at) = (bytes[place(from)..place(to)].to_vec(), place(at));
            bytes.splice(at..at, part);
        }
        Damage::Byte(..) => {}
    }
    bytes
}

#[test]
fn every_target_holds_for_its_seeds() {
    for target in TARGETS {
        let seeds = seeds(target.name);
        assert!(!seeds.is_empty(), "{}", target.name);
        seeds.iter().chain([&Vec::new()]).for_each(|bytes| (target.check)(bytes));
    }
}

#[test]
fn every_target_has_a_binary() {
    let manifest = include_str!("../../../fuzz/Cargo.toml");
    let binaries: Vec<&str> = manifest.lines().filter_map(|line| line.strip_prefix("name = \"")).collect();
    for target in TARGETS {
        assert!(binaries.contains(&format!("{}\"", target.name).as_str()), "{}", target.name);
    }
    assert_eq!(binaries.len(), TARGETS.len() + 1, "one for each target, and the package");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]
    #[test]
    fn every_target_holds_for_damaged_seeds(
        target in 0..TARGETS.len(), seed in any::<prop::sample::Index>(), hits in prop::collection::vec(damage(), 1..6),
    ) {
        let seeds = seeds(TARGETS[target].name);
        let bytes = hits.iter().fold(seeds[seed.index(seeds.len())].clone(), damaged);
        (TARGETS[target].check)(&bytes);
    }
}
