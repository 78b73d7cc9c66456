//! Tests how the cost of every parser grows. An input of four times the size must take about four
//! times the memory and time, or be rejected.
//!
//! The allocator counts the memory, so the result is the same on every machine. The measured time
//! is the CPU time of the thread, whose bound is high enough to hold on a busy machine. Not here:
//! the values that the parsers return.

#![forbid(unsafe_code)]

mod descriptions;
mod documents;
#[cfg(feature = "grpc")]
mod messages;
mod records;

use plimsoll_sys::allocations::{Allocations, CountingAllocator, count_allocations};
use plimsoll_sys::clock::thread_cpu_ns;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The largest accepted ratio of memory costs (bytes, allocations) if the size of an input
/// quadruples. The accepted ratio is above 4, because growing tables double their capacity.
const MEMORY_GROWTH_RATIO_MAX: u64 = 7;
/// For each cost (bytes, allocations, CPU time), the growth that is always accepted, so that small
/// inputs pass. Costs may grow by this amount in addition to the accepted ratio.
/// `CPU_GROWTH_RATIO_MAX` is the largest accepted ratio of CPU times if the size of an input
/// quadruples.
const ACCEPTED_EXTRA_BYTES: u64 = 1 << 20;
const ACCEPTED_EXTRA_ALLOCATIONS: u64 = 5_000;
const ACCEPTED_EXTRA_CPU_NS: u64 = 150_000_000;
const CPU_GROWTH_RATIO_MAX: u64 = 10;
/// The accepted memory costs of parsing a product, which is an input that grows in two dimensions
/// whose sizes multiply. The limits are several times the memory budget of the parser. Each limit
/// is a fixed number of bytes, plus a number of bytes for each byte of the input.
const PRODUCT_BYTES_MIN: u64 = 160 << 20;
const PRODUCT_BYTES_TIMES: u64 = 400;
const PRODUCT_PEAK_BYTES_MIN: u64 = 80 << 20;
const PRODUCT_PEAK_BYTES_TIMES: u64 = 120;
/// The largest accepted CPU time to parse one input of these tests, ns.
const CPU_NS_MAX: u64 = 4_000_000_000;
/// The longest accepted error message about a rejected input, bytes.
const ERROR_MESSAGE_BYTES_MAX: usize = 600;

/// A parser under test, which accepts the input or returns an error message.
type Reader = fn(&[u8]) -> Result<(), String>;

/// An input of a parser that grows in one dimension of its grammar. A product is an input that
/// grows in two dimensions whose sizes multiply.
struct GrowingInput {
    name: &'static str,
    read: Reader,
    /// The base size of the input, at which the parser takes milliseconds.
    size: usize,
    is_product: bool,
    input: fn(usize) -> Vec<u8>,
}

fn growing_input(name: &'static str, read: Reader, size: usize, input: fn(usize) -> Vec<u8>) -> GrowingInput {
    GrowingInput { name, read, size, is_product: false, input }
}

/// Returns an input that grows in two dimensions whose sizes multiply. Only the parser's memory
/// budget bounds the cost of parsing such an input.
fn two_dimensional_input(name: &'static str, read: Reader, size: usize, input: fn(usize) -> Vec<u8>) -> GrowingInput {
    GrowingInput { name, read, size, is_product: true, input }
}

/// Concatenates `count` pieces.
fn concatenated_pieces(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect()
}

/// Concatenates `count` pieces, separated by commas.
fn comma_separated_pieces(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(",")
}

/// Returns the input as text, for parsers that take text.
fn utf8_text(input: &[u8]) -> &str {
    std::str::from_utf8(input).expect("a text")
}

/// The measured cost of parsing one input.
struct Cost {
    input_bytes: u64,
    allocated: Allocations,
    cpu_ns: u64,
    refusal: Option<String>,
}

fn measure_parsing_cost(shape: &GrowingInput, size: usize) -> Cost {
    let input = (shape.input)(size);
    let began_ns = thread_cpu_ns();
    let (result, allocated) = count_allocations(|| (shape.read)(&input));
    Cost { input_bytes: input.len() as u64, allocated, cpu_ns: thread_cpu_ns() - began_ns, refusal: result.err() }
}

/// Describes each parsing cost that grows too much between a small and a large version of one
/// input.
fn excessive_costs(shape: &GrowingInput, once: &Cost, more: &Cost) -> Vec<String> {
    let mut excessive_costs = Vec::new();
    let mut bound = |what: &str, once: u64, more: u64, max: u64| {
        if more > max {
            excessive_costs.push(format!("{what}: {once} becomes {more}, at most {max}"));
        }
    };
    let (small, large) = (&once.allocated, &more.allocated);
    let cpu_ns_max = (once.cpu_ns * CPU_GROWTH_RATIO_MAX + ACCEPTED_EXTRA_CPU_NS).min(CPU_NS_MAX);
    if shape.is_product {
        let bytes = |min: u64, times: u64| min + times * more.input_bytes;
        let (bytes_max, peak_max) =
            (bytes(PRODUCT_BYTES_MIN, PRODUCT_BYTES_TIMES), bytes(PRODUCT_PEAK_BYTES_MIN, PRODUCT_PEAK_BYTES_TIMES));
        bound("bytes", small.bytes, large.bytes, bytes_max);
        bound("bytes at one time", small.peak_bytes, large.peak_bytes, peak_max);
        bound("CPU ns", once.cpu_ns, more.cpu_ns, CPU_NS_MAX);
    } else {
        bound("bytes", small.bytes, large.bytes, small.bytes * MEMORY_GROWTH_RATIO_MAX + ACCEPTED_EXTRA_BYTES);
        bound(
            "bytes at one time",
            small.peak_bytes,
            large.peak_bytes,
            small.peak_bytes * MEMORY_GROWTH_RATIO_MAX + ACCEPTED_EXTRA_BYTES,
        );
        bound(
            "allocations",
            small.count,
            large.count,
            small.count * MEMORY_GROWTH_RATIO_MAX + ACCEPTED_EXTRA_ALLOCATIONS,
        );
        bound("CPU ns", once.cpu_ns, more.cpu_ns, cpu_ns_max);
    }
    for sentence in [&once.refusal, &more.refusal].into_iter().flatten() {
        if sentence.is_empty() || sentence.len() > ERROR_MESSAGE_BYTES_MAX {
            excessive_costs.push(format!("a refusal of {} bytes: {sentence:.200}", sentence.len()));
        }
    }
    excessive_costs
}

fn check(shapes: Vec<GrowingInput>) {
    let mut all = Vec::new();
    for shape in shapes {
        let (once, more) = (measure_parsing_cost(&shape, shape.size), measure_parsing_cost(&shape, 4 * shape.size));
        all.extend(excessive_costs(&shape, &once, &more).into_iter().map(|flaw| format!("{}: {flaw}", shape.name)));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn traffic_files_need_linear_time_and_memory() {
    check(documents::traffic_file_inputs());
}

#[test]
fn documents_of_other_tools_need_linear_time_and_memory() {
    check(documents::import_inputs());
}

#[test]
fn openapi_descriptions_need_linear_time_and_memory() {
    check(descriptions::shapes());
}

#[cfg(feature = "grpc")]
#[test]
fn proto_descriptions_need_linear_time_and_memory() {
    check(messages::grpc_schema_inputs());
}

#[test]
fn records_need_linear_time_and_memory() {
    check(records::measured_data_inputs());
}

/// Prints the parsing costs of the inputs whose names contain the value of the environment variable
/// `GROWTH_SHAPE`. Each input is parsed at `GROWTH_FACTOR` times its base size, and at four times
/// that size.
#[test]
#[ignore = "a measurement for people"]
fn print_parsing_costs() {
    let wanted = std::env::var("GROWTH_SHAPE").unwrap_or_default();
    let factor: usize = std::env::var("GROWTH_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let all = [
        documents::traffic_file_inputs(),
        documents::import_inputs(),
        descriptions::shapes(),
        #[cfg(feature = "grpc")]
        messages::grpc_schema_inputs(),
        records::measured_data_inputs(),
    ];
    for shape in all.iter().flatten().filter(|shape| shape.name.contains(&wanted)) {
        for times in [factor, 4 * factor] {
            let Cost { input_bytes, allocated: Allocations { count, bytes, peak_bytes }, cpu_ns, refusal } =
                measure_parsing_cost(shape, shape.size * times);
            println!(
                "{:<44} {:>7} {input_bytes:>9} B {:>7.3} s {:>7} kB, peak {:>7} kB, {count:>8} times {:.170}",
                shape.name,
                shape.size * times,
                cpu_ns as f64 / 1e9,
                bytes >> 10,
                peak_bytes >> 10,
                refusal.unwrap_or_default(),
            );
        }
    }
}
