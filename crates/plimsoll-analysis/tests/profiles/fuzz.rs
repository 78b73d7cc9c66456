//! The seeded fuzz test of the profile readers, and a test that its driver notices broken readers.

use super::driver::check_reader;
use super::encode::{EncodingChoices, PlainProfile, PlainSample, encode_profile};
use plimsoll_analysis::profile::{ReadError, read};
use plimsoll_model::profile::{LabelValue, Profile, ProfileBuilder};
use plimsoll_model::rng::Rng;

const ROUNDS: usize = 4000;
const MUTANTS: usize = 4;

fn random_bool_one_in(rng: &mut Rng, one_in: u64) -> bool {
    rng.uniform_below(one_in) == 0
}

/// Creates a random small profile with every feature of the format: inlined frames, recursion,
/// labels, negative values, empty stacks.
fn random_plain_profile(rng: &mut Rng) -> PlainProfile {
    let types = (0..1 + rng.uniform_below(4)).map(|n| (format!("kind{n}"), "count".to_owned())).collect::<Vec<_>>();
    let names = 1 + rng.uniform_below(12);
    let name = |rng: &mut Rng| format!("f{}", rng.uniform_below(names));
    let places: Vec<Vec<String>> =
        (0..1 + rng.uniform_below(12)).map(|_| (0..1 + rng.uniform_below(3)).map(|_| name(rng)).collect()).collect();
    let samples = (0..rng.uniform_below(12))
        .map(|_| PlainSample {
            stack: (0..rng.uniform_below(8)).map(|_| rng.uniform_below(places.len() as u64) as usize).collect(),
            values: types.iter().map(|_| rng.uniform_below(2000) as i64 - 500).collect(),
            labels: (0..rng.uniform_below(3)).map(|n| (format!("k{n}"), name(rng))).collect(),
        })
        .collect();
    PlainProfile { types, places, samples }
}

fn random_encoding_choices(rng: &mut Rng) -> EncodingChoices {
    EncodingChoices {
        unpacked: random_bool_one_in(rng, 2),
        strings_first: random_bool_one_in(rng, 2),
        id_offset: if random_bool_one_in(rng, 3) { rng.next_u64() >> 1 } else { 0 },
        unknown_fields: random_bool_one_in(rng, 2),
    }
}

/// Checks that the profile that was read equals the profile that was written: its stacks with
/// inlined frames, its values and its labels.
fn check_same_profile(profile: &Profile, plain: &PlainProfile) -> Result<(), String> {
    let name = |function: u32| profile.functions()[function as usize].name.clone();
    let types = profile.sample_types.iter().map(|t| (t.kind.clone(), t.unit.clone()));
    let read: Vec<_> = profile
        .samples()
        .map(|sample| {
            let labels = sample.labels().map(|label| match &label.value {
                LabelValue::Text(text) => (label.key.clone(), text.clone()),
                LabelValue::Number(..) => (label.key.clone(), "a number".to_owned()),
            });
            (sample.functions_from_root().map(name).collect(), sample.values().to_vec(), labels.collect())
        })
        .collect();
    let written: Vec<_> = plain
        .samples
        .iter()
        .map(|sample| {
            let leaf_first = sample.stack.iter().flat_map(|place| plain.places[*place].clone());
            let mut stack: Vec<String> = leaf_first.collect();
            stack.reverse();
            (stack, sample.values.clone(), sample.labels.clone())
        })
        .collect();
    if !types.eq(plain.types.iter().cloned()) || read != written {
        return Err(format!("read {read:?} instead of {written:?}"));
    }
    Ok(())
}

fn mutate_bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..1 + rng.uniform_below(4) {
        let at = rng.uniform_below(bytes.len().max(1) as u64) as usize;
        match rng.uniform_below(5) {
            _ if bytes.is_empty() => bytes.push(rng.next_u64() as u8),
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << rng.uniform_below(8),
            2 => bytes[at] = rng.next_u64() as u8,
            3 => bytes.insert(at, rng.next_u64() as u8),
            _ => drop(bytes.remove(at)),
        }
    }
}

/// Creates random text that resembles folded stacks or output of `perf script`.
fn random_profile_text(rng: &mut Rng) -> Vec<u8> {
    const WORDS: [&str; 14] = [
        "main;serve 3\n",
        "a;b",
        " ",
        "\n",
        "\t",
        "12",
        "-7",
        "#x\n",
        "node 12/3 [001] 5.67: 250000 cpu-clock:u: \n",
        "\t7f12 f+0x1a (/lib/x.so)\n",
        "\t7f12 [unknown] ()\n",
        "perf 1 2.3:",
        ":",
        "(",
    ];
    (0..rng.uniform_below(12)).flat_map(|_| WORDS[rng.uniform_below(WORDS.len() as u64) as usize].bytes()).collect()
}

/// Tests a reader with random profiles and texts. An error contains the round and what failed.
fn fuzz_reader(read: impl Fn(&[u8]) -> Result<Profile, ReadError>, seed: u64, rounds: usize) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    for round in 0..rounds {
        let failed = |what: String| format!("round {round}: {what}");
        let plain = random_plain_profile(&mut rng);
        let bytes = encode_profile(&plain, random_encoding_choices(&mut rng));
        let profile = check_reader(&read, &bytes).map_err(failed)?;
        let profile = profile.ok_or_else(|| failed("a good profile was refused".to_owned()))?;
        check_same_profile(&profile, &plain).map_err(failed)?;
        for _ in 0..MUTANTS {
            let mut mutant = bytes.clone();
            mutate_bytes(&mut rng, &mut mutant);
            check_reader(&read, &mutant).map_err(failed)?;
        }
        let mut words = random_profile_text(&mut rng);
        check_reader(&read, &words).map_err(failed)?;
        mutate_bytes(&mut rng, &mut words);
        check_reader(&read, &words).map_err(failed)?;
    }
    Ok(())
}

#[test]
fn any_profile_bytes_are_parsed_or_refused() {
    fuzz_reader(read, super::seed(), ROUNDS).unwrap_or_else(|what| panic!("{what}"));
}

/// Copies a profile, and changes its samples by `change`. The arguments of `change` are the stack
/// (from the leaf on) and the values.
fn rebuild_profile(profile: &Profile, change: impl Fn(&mut Vec<u32>, &mut Vec<i64>)) -> Profile {
    let mut builder = ProfileBuilder::new(profile.sample_types.clone());
    let ids: Vec<u32> = profile.functions().iter().map(|f| builder.intern_function(&f.name, &f.file)).collect();
    let places: Vec<u32> = ids.iter().map(|id| builder.add_location(&[*id])).collect();
    for sample in profile.samples() {
        let mut stack: Vec<u32> = sample.functions_from_root().collect();
        stack.reverse();
        let mut values = sample.values().to_vec();
        change(&mut stack, &mut values);
        stack.iter().for_each(|function| builder.push_location(places[*function as usize]));
        for label in sample.labels() {
            let id = builder.intern_label(label.clone());
            builder.push_label(id);
        }
        builder.end_sample(&values);
    }
    builder.finish()
}

#[test]
fn the_fuzz_driver_detects_broken_readers() {
    type Reader = fn(&[u8]) -> Result<Profile, ReadError>;
    let whole: Reader = |bytes| read(bytes).map(|p| rebuild_profile(&p, |_, _| ()));
    fuzz_reader(whole, 1, 300).expect("building again changes nothing");
    let broken: [(&str, Reader); 5] = [
        ("stacks upside down", |bytes| read(bytes).map(|p| rebuild_profile(&p, |stack, _| stack.reverse()))),
        ("a value lost", |bytes| read(bytes).map(|p| rebuild_profile(&p, |_, values| values[0] = 0))),
        ("leaves lost", |bytes| {
            read(bytes).map(|p| rebuild_profile(&p, |stack, _| drop(stack.drain(..stack.len().min(1)))))
        }),
        ("panics at a short input", |bytes| if bytes.len() < 9 { panic!("short") } else { read(bytes) }),
        ("refuses what it should read", |bytes| if bytes.len() % 7 == 3 { Err(ReadError::Empty) } else { read(bytes) }),
    ];
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let outcomes = broken.map(|(what, reader)| (what, fuzz_reader(reader, 2, 2000)));
    std::panic::set_hook(hook);
    for (what, outcome) in outcomes {
        assert!(outcome.is_err(), "not noticed: {what}");
    }
}
