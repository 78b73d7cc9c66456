//! Tests of a store of run files through its public interface. The tests write run files in the
//! format of a recording, and check what the list of runs shows.

use plimsoll_analysis::history::{RunState, SeriesOrder, group_comparable_runs};
use plimsoll_history::{RunFilter, RunName, Store, read_run};
use plimsoll_model::codec::{Frame, MAGIC, RunFileHeader};
use plimsoll_model::{
    ArrivalSpacing, Environment, ExperimentSettings, ExperimentSpec, FindSpec, LineSummary, LoadCurve, LoadShape, Plan,
    SourceRevision, StartNotes, StudySummary,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Creates an empty folder for one test.
fn create_test_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plimsoll-history-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Returns the bytes of the run file of a `find` run. `number` sets the run's start time, commit
/// and tag. `filler` is the number of bytes between head and end, where a real run has its trials.
fn find_run_file_bytes(number: u64, rps: f64, filler: usize, summary: Option<StudySummary>) -> Vec<u8> {
    let plan = Plan::for_get_request("127.0.0.1", 8080, vec![], LoadShape::Closed { users: LoadCurve::constant(1.0) });
    let asked = ExperimentSpec::Find(FindSpec {
        base: plan.record(),
        slo: "p99<=500ms".to_owned(),
        budget_ns: 60_000_000_000,
        max_rate: None,
        arrivals: ArrivalSpacing::Poisson,
        preflight_ns: 0,
        profiles: None,
        planning: Default::default(),
    });
    let mut settings: ExperimentSettings<String> = ExperimentSettings::default();
    settings.output.tags = vec![("number".to_owned(), number.to_string())];
    let revision = SourceRevision {
        commit: format!("{number:08x}{:032x}", 7),
        branch: Some("main".to_owned()),
        dirty: Some(false),
        committed_unix_s: Some(1_700_000_000 + number),
    };
    let header = RunFileHeader {
        spec: asked,
        started_unix_ms: 1_700_000_000_000 + number * 60_000,
        settings: Some(Box::new(settings.record())),
        command: vec!["plimsoll".to_owned(), "find".to_owned()],
        environment: Environment {
            cores: 2,
            cpu: "a processor".to_owned(),
            revision: Some(revision),
            ..Environment::default()
        },
        start_notes: StartNotes::default(),
    };
    let mut bytes = MAGIC.to_vec();
    Frame::Experiment(Box::new(header)).encode(&mut bytes);
    bytes.extend(std::iter::repeat_n(0u8, filler));
    let line = LineSummary { rps, lower: rps * 0.98, upper: Some(rps * 1.02), confirmed: true };
    let summary = summary.unwrap_or(StudySummary { load_line: Some(line), ..StudySummary::default() });
    Frame::ExperimentEnd { elapsed_ns: 60_000_000_000, summary: Some(Box::new(summary)) }.encode(&mut bytes);
    bytes
}

fn write_find_run_file(folder: &Path, number: u64, rps: f64) -> String {
    let name = format!("find-{}-4194999.plimsoll", 1_700_000_000 + number);
    fs::write(folder.join(&name), find_run_file_bytes(number, rps, 2_000, None)).expect("written");
    name
}

fn refreshed_store(folder: &Path) -> Store {
    let mut store = Store::open(folder).expect("a store");
    store.refresh_index().expect("refreshed");
    store
}

fn stored_run_count(store: &mut Store) -> usize {
    store.matching_runs(&RunFilter::default()).expect("runs").len()
}

#[test]
fn the_index_matches_the_run_files() {
    let folder = create_test_folder("follows");
    let names: Vec<String> = (0..5).map(|number| write_find_run_file(&folder, number, 2000.0)).collect();
    fs::write(folder.join("other.plimsoll"), "no run file").expect("written");
    std::os::unix::fs::symlink(&names[0], folder.join("link.plimsoll")).expect("a link");
    let mut store = refreshed_store(&folder);
    assert_eq!(stored_run_count(&mut store), 5);
    let unreadable = store.unreadable_files().expect("listed");
    assert!(unreadable.len() == 1 && unreadable[0].1.contains("not a plimsoll run file"), "{unreadable:?}");
    // One file is removed, another file is changed, and a third file is new.
    fs::remove_file(folder.join(&names[0])).expect("removed");
    fs::write(folder.join(&names[1]), find_run_file_bytes(1, 1500.0, 10, None)).expect("written");
    write_find_run_file(&folder, 9, 2000.0);
    store.refresh_index().expect("refreshed");
    let runs = store.matching_runs(&RunFilter::default()).expect("runs");
    let lines: Vec<f64> = runs.iter().filter_map(|run| run.series_value_rps()).collect();
    assert_eq!(lines, [1500.0, 2000.0, 2000.0, 2000.0, 2000.0]);
    assert_eq!(group_comparable_runs(&runs, SeriesOrder::Commit)[0].points.len(), 5);
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_damaged_index_is_rebuilt() {
    let folder = create_test_folder("damaged");
    (0..20).for_each(|number| _ = write_find_run_file(&folder, number, 2000.0));
    assert_eq!(stored_run_count(&mut refreshed_store(&folder)), 20);
    let index = folder.join("index.sqlite");
    let whole = fs::read(&index).expect("an index");
    for damage in ["text", "cut", "zeroes in the middle", "another layout"] {
        let mut bytes = whole.clone();
        match damage {
            "text" => bytes = b"this is no database at all, whatever its name says".repeat(20),
            "cut" => bytes.truncate(whole.len() / 2),
            "another layout" => bytes[60..64].copy_from_slice(&99u32.to_be_bytes()),
            _ => bytes[4096..whole.len() - 100].fill(0),
        }
        fs::write(&index, &bytes).expect("written");
        let mut store = refreshed_store(&folder);
        assert_eq!(stored_run_count(&mut store), 20, "{damage}");
    }
    // A store also recovers if its index is damaged while the store is open.
    let mut store = refreshed_store(&folder);
    fs::write(&index, b"damaged while it was open, and longer than nothing").expect("written");
    write_find_run_file(&folder, 30, 2000.0);
    store.refresh_index().expect("refreshed");
    assert_eq!(stored_run_count(&mut store), 21);
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_read_only_store_is_read() {
    let folder = create_test_folder("read-only");
    (0..3).for_each(|number| _ = write_find_run_file(&folder, number, 2000.0));
    // The test creates a folder at the path of the index, so that even root, who ignores file
    // permissions, cannot write the index.
    fs::create_dir(folder.join("index.sqlite")).expect("a folder");
    assert_eq!(stored_run_count(&mut refreshed_store(&folder)), 3);
    fs::remove_dir(folder.join("index.sqlite")).expect("removed");
    std::os::unix::fs::symlink("/dev/null", folder.join("index.sqlite")).expect("a link");
    assert_eq!(stored_run_count(&mut refreshed_store(&folder)), 3);
    assert_eq!(stored_run_count(&mut refreshed_store(&folder.join("nowhere"))), 0);
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn foreign_databases_are_not_changed() {
    let folder = create_test_folder("foreign");
    (0..3).for_each(|number| _ = write_find_run_file(&folder, number, 2000.0));
    let index = folder.join("index.sqlite");
    for version in [0, 1, 7] {
        let database = rusqlite::Connection::open(&index).expect("a database");
        let sql = format!(
            "CREATE TABLE photos (name TEXT); INSERT INTO photos VALUES ('a'); PRAGMA user_version = {version};"
        );
        database.execute_batch(&sql).expect("written");
        drop(database);
        let before = fs::read(&index).expect("there");
        assert_eq!(stored_run_count(&mut refreshed_store(&folder)), 3, "{version}");
        assert!(fs::read(&index).is_ok_and(|after| after == before), "{version}");
        fs::remove_file(&index).expect("removed");
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn linked_index_files_are_not_overwritten() {
    let folder = create_test_folder("linked");
    (0..3).for_each(|number| _ = write_find_run_file(&folder, number, 2000.0));
    for name in ["index.sqlite", "index.sqlite-journal", "index.sqlite-wal", "index.sqlite-shm"] {
        let other = folder.join("precious");
        for is_symbolic in [false, true] {
            fs::write(&other, "precious").expect("written");
            let linked = folder.join(name);
            let _ = fs::remove_file(&linked);
            match is_symbolic {
                true => std::os::unix::fs::symlink(&other, &linked).expect("a link"),
                false => fs::hard_link(&other, &linked).expect("another name"),
            }
            assert_eq!(stored_run_count(&mut refreshed_store(&folder)), 3, "{name}");
            assert_eq!(fs::read_to_string(&other).expect("there"), "precious", "{name} {is_symbolic}");
            let _ = fs::remove_file(&linked);
        }
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn several_writers_write_one_index() {
    let folder = create_test_folder("writers");
    (0..40).for_each(|number| _ = write_find_run_file(&folder, number, 2000.0));
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let folder = &folder;
            scope.spawn(move || {
                let mut store = Store::open(folder).expect("a store");
                for round in 0..10 {
                    write_find_run_file(folder, 100 + writer * 10 + round, 2000.0);
                    store.refresh_index().expect("refreshed");
                }
            });
        }
    });
    assert_eq!(stored_run_count(&mut refreshed_store(&folder)), 80);
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn unfinished_runs_have_their_own_state() {
    let folder = create_test_folder("state");
    let whole = find_run_file_bytes(1, 2000.0, 500, None);
    let cut = folder.join("find-1-1.plimsoll");
    fs::write(&cut, &whole[..whole.len() - 7]).expect("written");
    assert_eq!(read_run(&cut, "x").expect("read").state, RunState::BrokenOff);
    let file = fs::File::open(&cut).expect("open");
    file.lock().expect("locked");
    let mut store = refreshed_store(&folder);
    let state = |store: &mut Store| store.matching_runs(&RunFilter::default()).expect("runs")[0].state;
    assert_eq!(state(&mut store), RunState::UnderWay);
    // Dropping the file releases the writer's lock, but leaves the bytes of the run file unchanged.
    drop(file);
    store.refresh_index().expect("refreshed");
    assert_eq!(state(&mut store), RunState::BrokenOff);
    fs::write(&cut, &whole).expect("written");
    store.refresh_index().expect("refreshed");
    assert_eq!(state(&mut store), RunState::Whole);
    // A run file that is cut off within its head cannot be read.
    for length in [0, 5, 12, 200] {
        fs::write(&cut, &whole[..length]).expect("written");
        assert!(read_run(&cut, "x").is_err(), "{length}");
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn run_names_resolve_to_runs() {
    let folder = create_test_folder("names");
    let names: Vec<String> = (0..5).map(|number| write_find_run_file(&folder, number, 2000.0)).collect();
    let runs = refreshed_store(&folder).matching_runs(&RunFilter::default()).expect("runs");
    for (word, expect) in [
        ("@latest", Ok(4)),
        ("@1", Ok(4)),
        ("@2", Ok(3)),
        ("@main", Ok(4)),
        ("@00000002", Ok(2)),
        ("@number=1", Ok(1)),
        ("@6", Err("has 5 finished runs")),
        ("@other", Err("no run of the store")),
    ] {
        match (RunName::parse(word).find_run(&runs), expect) {
            (Ok(found), Ok(number)) => assert_eq!(found.map(|run| &run.file), Some(&names[number]), "{word}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{word}: {error}"),
            (got, expect) => panic!("{word}: {got:?}, expected {expect:?}"),
        }
    }
    assert_eq!(RunName::parse("a/b.plimsoll"), RunName::Path("a/b.plimsoll".into()));
    let filter = |service: &str| RunFilter { service: Some(service.to_owned()), branch: None };
    let mut store = refreshed_store(&folder);
    for (service, expect) in
        [("http://127.0.0.1:8080/", 5), ("http://127.0.0.1:8080", 5), ("http://127.0.0.1:80", 0), ("x", 0)]
    {
        assert_eq!(store.matching_runs(&filter(service)).expect("runs").len(), expect, "{service}");
    }
    fs::remove_dir_all(&folder).expect("removed");
}

/// Checks that the list of runs reads only the head and the end of each file, so that a long file
/// costs no more time.
#[test]
fn listing_reads_only_start_and_end_of_files() {
    let folder = create_test_folder("ends");
    let path = folder.join("find-1-1.plimsoll");
    fs::write(&path, find_run_file_bytes(1, 2000.0, 8 << 20, None)).expect("written");
    let rounds = 50;
    let started = Instant::now();
    for _ in 0..rounds {
        assert_eq!(read_run(&path, "x").expect("read").series_value_rps(), Some(2000.0));
    }
    let each_us = started.elapsed().as_micros() / rounds;
    // The limit of 20 ms allows for a slow test build and a busy machine. Reading the whole file
    // would take about 100 ms.
    assert!(each_us < 20_000, "{each_us} us");
    fs::remove_dir_all(&folder).expect("removed");
}

/// Prints how long it takes to list 10 000 run files. Run this test with `cargo test --release -p
/// plimsoll-history -- --ignored --nocapture`.
#[test]
#[ignore = "writes 10 000 files"]
fn ten_thousand_runs_are_listed_quickly() {
    let folder = create_test_folder("many");
    for number in 0..10_000 {
        let name = format!("find-{}-4194999.plimsoll", 1_700_000_000 + number);
        fs::write(folder.join(name), find_run_file_bytes(number, 2000.0 + number as f64 % 7.0, 20_000, None))
            .expect("written");
    }
    let timed = |what: &str, started: Instant| println!("{what}: {} ms", started.elapsed().as_millis());
    let started = Instant::now();
    let mut store = refreshed_store(&folder);
    timed("index from nothing", started);
    let started = Instant::now();
    store.refresh_index().expect("refreshed");
    let runs = store.matching_runs(&RunFilter::default()).expect("runs");
    timed("refresh and list", started);
    let started = Instant::now();
    let lane = &group_comparable_runs(&runs, SeriesOrder::Time)[0];
    timed("one lane with its change points", started);
    println!("{} runs, {} changes", lane.runs.len(), lane.changes.len());
    let started = Instant::now();
    for _ in 0..100 {
        read_run(&folder.join(&runs[5].file), "x").expect("read");
    }
    println!("a head: {} us", started.elapsed().as_micros() / 100);
    fs::remove_dir_all(&folder).expect("removed");
}
