//! Tests how the cost of parsing gRPC descriptors grows with their size, for `.proto` texts and for
//! compiled descriptors.

use super::{
    GrowingInput, comma_separated_pieces, concatenated_pieces, growing_input, two_dimensional_input, utf8_text,
};
use plimsoll_traffic::grpc::Schema;

/// Compiles the `.proto` files of an input. In the input, each file begins with a line `// FILE
/// name`. The compiler starts at the first file, `a.proto`.
fn read_proto(input: &[u8]) -> Result<(), String> {
    let mut files = std::collections::HashMap::new();
    for file in utf8_text(input).split("// FILE ").skip(1) {
        let (name, text) = file.split_once('\n').expect("a name");
        files.insert(name.to_owned(), text.to_owned());
    }
    let source = move |name: &str| files.get(name).cloned().map(Ok);
    Schema::from_protos(&["a.proto".to_owned()], source).map(drop).map_err(|error| error.to_string())
}

fn read_descriptors(input: &[u8]) -> Result<(), String> {
    let schema = Schema::from_descriptor_set(input).map_err(|error| error.to_string())?;
    for service in schema.services() {
        schema.describe_methods(&service).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn proto3_file(inside: &str) -> Vec<u8> {
    format!("// FILE a.proto\nsyntax = \"proto3\";\n{inside}").into_bytes()
}

fn proto2_file(inside: &str) -> Vec<u8> {
    format!("// FILE a.proto\nsyntax = \"proto2\";\n{inside}").into_bytes()
}

fn string_field_definition(number: usize) -> String {
    // Field numbers from 19000 to 19999 are reserved by protobuf, so the function skips these
    // numbers.
    format!("string f{number} = {};\n", if number < 18_000 { number + 1 } else { number + 10_000 })
}

fn proto_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input(".proto: a repeated file option", read_proto, 2_000, |n| {
            proto3_file(&"option java_package = \"a\";\n".repeat(n))
        }),
        growing_input(".proto: options of fields", read_proto, 1_500, |n| {
            let field = |n: usize| string_field_definition(n).replace(';', " [deprecated = true];");
            proto3_file(&format!("message A {{ {} }}", concatenated_pieces(n, field)))
        }),
        growing_input(".proto: options that are extensions", read_proto, 1_000, |n| {
            let extend = "import \"google/protobuf/descriptor.proto\"; extend google.protobuf.FieldOptions { string o = 50000; }\n";
            let field = |n: usize| string_field_definition(n).replace(';', " [(o) = \"x\"];");
            proto3_file(&format!("{extend}message A {{ {} }}", concatenated_pieces(n, field)))
        }),
        growing_input(".proto: fields of a message", read_proto, 2_000, |n| {
            proto3_file(&format!("message A {{ {} }}", concatenated_pieces(n, string_field_definition)))
        }),
        growing_input(".proto: fields of one number", read_proto, 2_000, |n| {
            proto3_file(&format!("message A {{ {} }}", concatenated_pieces(n, |n| format!("string f{n} = 1;\n"))))
        }),
        growing_input(".proto: fields of numbers that are not theirs", read_proto, 2_000, |n| {
            proto3_file(&format!("message A {{ {} }}", concatenated_pieces(n, |n| format!("string f{n} = 19000;\n"))))
        }),
        growing_input(".proto: types that are not there", read_proto, 2_000, |n| {
            proto3_file(&format!("message A {{ {} }}", concatenated_pieces(n, |n| format!("X{n} f{n} = {};\n", n + 1))))
        }),
        growing_input(".proto: statements that are none", read_proto, 2_000, |n| {
            proto3_file(&"message {}\n".repeat(n))
        }),
        growing_input(".proto: messages", read_proto, 2_000, |n| {
            proto3_file(&concatenated_pieces(n, |n| format!("message M{n} {{ string a = 1; }}\n")))
        }),
        growing_input(".proto: messages of each other", read_proto, 1_500, |n| {
            proto3_file(&concatenated_pieces(n + 1, |at| {
                format!("message M{at} {{ M{} a = 1; }}\n", (at + 1) % (n + 1))
            }))
        }),
        growing_input(".proto: messages inside a message", read_proto, 1_500, |n| {
            proto3_file(&format!("message A {{ {} }}", concatenated_pieces(n, |n| format!("message M{n} {{}}\n"))))
        }),
        growing_input(".proto: maps", read_proto, 1_000, |n| {
            proto3_file(&format!(
                "message A {{ {} }}",
                concatenated_pieces(n, |n| string_field_definition(n).replace("string", "map<string, string>"))
            ))
        }),
        growing_input(".proto: oneofs", read_proto, 1_000, |n| {
            proto3_file(&format!(
                "message A {{ {} }}",
                concatenated_pieces(n, |n| format!("oneof o{n} {{ {} }}", string_field_definition(n)))
            ))
        }),
        growing_input(".proto: optional fields", read_proto, 1_000, |n| {
            proto3_file(&format!(
                "message A {{ {} }}",
                concatenated_pieces(n, |n| format!("optional {}", string_field_definition(n)))
            ))
        }),
        growing_input(".proto: values of an enum", read_proto, 2_000, |n| {
            proto3_file(&format!("enum E {{ {} }}", concatenated_pieces(n, |n| format!("V{n} = {n};\n"))))
        }),
        two_dimensional_input(".proto: values of an enum in the reverse order", read_proto, 5_000, |n| {
            proto3_file(&format!(
                "enum E {{ Z = 0; {} }}",
                concatenated_pieces(n, |at| format!("V{at} = {};\n", n - at))
            ))
        }),
        // The larger of the two tested inputs uses 95 % of the parser's work budget
        // (`LINK_WORK_BYTES_MAX`).
        two_dimensional_input(".proto: ranges and fields", read_proto, 2_000, |n| {
            let ranges = comma_separated_pieces(n, |n| (100_000 + 2 * n).to_string());
            proto3_file(&format!(
                "message A {{ reserved {ranges}; {} }}",
                concatenated_pieces(n, string_field_definition)
            ))
        }),
        two_dimensional_input(".proto: ranges of extensions and fields", read_proto, 1_000, |n| {
            let ranges = comma_separated_pieces(n, |n| (100_000 + 2 * n).to_string());
            let fields = concatenated_pieces(n, |n| format!("optional {}", string_field_definition(n)));
            proto2_file(&format!("message A {{ extensions {ranges}; {fields} }}"))
        }),
        growing_input(".proto: reserved names", read_proto, 2_000, |n| {
            proto3_file(&format!("message A {{ reserved {}; }}", comma_separated_pieces(n, |n| format!("\"r{n}\""))))
        }),
        two_dimensional_input(".proto: defaults and values of an enum", read_proto, 1_000, |n| {
            let fields =
                concatenated_pieces(n, |at| format!("optional E f{at} = {} [default = V{}];\n", at + 1, n - 1));
            proto2_file(&format!(
                "enum E {{ {} }} message A {{ {fields} }}",
                concatenated_pieces(n, |n| format!("V{n} = {n};\n"))
            ))
        }),
        growing_input(".proto: methods of a service", read_proto, 1_500, |n| {
            proto3_file(&format!(
                "message A {{}} service S {{ {} }}",
                concatenated_pieces(n, |n| format!("rpc M{n}(A) returns (A);\n"))
            ))
        }),
        growing_input(".proto: services", read_proto, 1_500, |n| {
            proto3_file(&format!(
                "message A {{}} {}",
                concatenated_pieces(n, |n| format!("service S{n} {{ rpc M(A) returns (A); }}\n"))
            ))
        }),
        two_dimensional_input(".proto: parts of a package", read_proto, 3_000, |n| {
            proto3_file(&format!("package {};", (0..n).map(|n| format!("p{n}")).collect::<Vec<_>>().join(".")))
        }),
        two_dimensional_input(".proto: a long package and messages", read_proto, 2_000, |n| {
            proto3_file(&format!(
                "package {};{}",
                "p".repeat(10 * n),
                concatenated_pieces(n, |n| format!("message M{n} {{}}\n"))
            ))
        }),
        two_dimensional_input(".proto: a long type and fields", read_proto, 2_000, |n| {
            let name = "M".repeat(10 * n);
            let fields =
                concatenated_pieces(n, |n| format!("A.B f{n} = {};\n", if n < 18_000 { n + 1 } else { n + 10_000 }));
            proto3_file(&format!("message {name} {{ message A {{ message B {{}} }} {fields} }}"))
        }),
        two_dimensional_input(".proto: parts of a package and types", read_proto, 1_000, |n| {
            let package = (0..n).map(|n| format!("p{n}")).collect::<Vec<_>>().join(".");
            proto3_file(&format!(
                "package {package}; message M {{}} {}",
                concatenated_pieces(n, |n| format!("message M{n} {{ M a = 1; }}\n"))
            ))
        }),
        growing_input(".proto: comments", read_proto, 10_000, |n| proto3_file(&"// x\n".repeat(n))),
        growing_input(".proto: a text of pieces", read_proto, 2_000, |n| {
            proto3_file(&format!("option java_package = {};", "\"a\" ".repeat(n)))
        }),
        growing_input(".proto: an option of many parts", read_proto, 1_000, |n| {
            proto3_file(&format!("option {} = 1;", (0..n).map(|n| format!("p{n}")).collect::<Vec<_>>().join(".")))
        }),
        growing_input(".proto: an aggregate of an option", read_proto, 2_000, |n| {
            proto3_file(&format!("option (a) = {{ {} }};", "a: 1 ".repeat(n)))
        }),
        growing_input(".proto: an edition", read_proto, 1_500, |n| {
            let fields = concatenated_pieces(n, |n| {
                string_field_definition(n).replace(';', " [features.field_presence = IMPLICIT];")
            });
            format!("// FILE a.proto\nedition = \"2023\";\nmessage A {{ {fields} }}").into_bytes()
        }),
        growing_input(".proto: imports", read_proto, 500, |n| {
            let imports = concatenated_pieces(n, |n| format!("import \"f{n}.proto\";\n"));
            let files =
                concatenated_pieces(n, |n| format!("// FILE f{n}.proto\nsyntax = \"proto3\"; message M{n} {{}}\n"));
            [proto3_file(&imports), files.into_bytes()].concat()
        }),
        growing_input(".proto: imports in a row", read_proto, 500, |n| {
            let files = concatenated_pieces(n, |n| {
                format!("// FILE f{n}.proto\nsyntax = \"proto3\"; import \"f{}.proto\";\n", n + 1)
            });
            [proto3_file("import \"f0.proto\";\n"), files.into_bytes(), format!("// FILE f{n}.proto\n").into_bytes()]
                .concat()
        }),
        two_dimensional_input(".proto: public imports", read_proto, 20, |n| {
            let file = |n: usize| {
                format!(
                    "// FILE f{n}.proto\nsyntax = \"proto3\"; import public \"f{}.proto\"; import public \"f{}.proto\";\n",
                    n + 1,
                    n + 2
                )
            };
            let last = format!("// FILE f{n}.proto\n// FILE f{}.proto\n", n + 1);
            [proto3_file("import \"f0.proto\";\n"), concatenated_pieces(n, file).into_bytes(), last.into_bytes()]
                .concat()
        }),
    ]
}

/// Encodes a length-delimited protobuf field.
fn encode_length_delimited_field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push((length % 0x80 + 0x80) as u8);
        length /= 0x80;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

fn encode_repeated_field(number: u8, count: usize, content: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(|at| encode_length_delimited_field(number, &content(at))).collect()
}

fn encode_name_field(name: String) -> Vec<u8> {
    encode_length_delimited_field(1, name.as_bytes())
}

fn encode_file_descriptor(name: &str, inside: &[u8]) -> Vec<u8> {
    encode_length_delimited_field(
        1,
        &[encode_name_field(name.to_owned()), inside.to_vec(), encode_length_delimited_field(12, b"proto3")].concat(),
    )
}

fn descriptor_inputs() -> Vec<GrowingInput> {
    vec![
        growing_input("descriptors: files", read_descriptors, 1_500, |n| {
            (0..n).flat_map(|n| encode_file_descriptor(&format!("f{n}"), b"")).collect()
        }),
        growing_input("descriptors: messages", read_descriptors, 2_000, |n| {
            encode_file_descriptor("a", &encode_repeated_field(4, n, |n| encode_name_field(format!("M{n}"))))
        }),
        growing_input("descriptors: services", read_descriptors, 1_500, |n| {
            encode_file_descriptor("a", &encode_repeated_field(6, n, |n| encode_name_field(format!("S{n}"))))
        }),
        growing_input("descriptors: imports", read_descriptors, 1_500, |n| {
            let imports = encode_repeated_field(3, n, |n| format!("f{n}").into_bytes());
            [
                (0..n).flat_map(|n| encode_file_descriptor(&format!("f{n}"), b"")).collect(),
                encode_file_descriptor("a", &imports),
            ]
            .concat()
        }),
        two_dimensional_input("descriptors: public imports", read_descriptors, 20, |n| {
            let imports = |n: usize| {
                let names = encode_repeated_field(3, 2, |at| format!("f{}", n + 1 + at).into_bytes());
                encode_file_descriptor(&format!("f{n}"), &[names, vec![10 << 3, 0, 10 << 3, 1]].concat())
            };
            [
                (0..n).flat_map(imports).collect(),
                encode_file_descriptor(&format!("f{n}"), b""),
                encode_file_descriptor(&format!("f{}", n + 1), b""),
            ]
            .concat()
        }),
        growing_input("descriptors: a file that imports itself", read_descriptors, 1, |_| {
            encode_file_descriptor("a", &[encode_length_delimited_field(3, b"a"), vec![10 << 3, 0]].concat())
        }),
        two_dimensional_input("descriptors: a long package and messages", read_descriptors, 2_000, |n| {
            let package = encode_length_delimited_field(2, "p".repeat(10 * n).as_bytes());
            encode_file_descriptor(
                "a",
                &[package, encode_repeated_field(4, n, |n| encode_name_field(format!("M{n}")))].concat(),
            )
        }),
        growing_input("descriptors: places", read_descriptors, 5_000, |n| {
            encode_file_descriptor(
                "a",
                &encode_length_delimited_field(9, &encode_repeated_field(1, n, |_| vec![10, 1, 1])),
            )
        }),
    ]
}

pub fn grpc_schema_inputs() -> Vec<GrowingInput> {
    [proto_inputs(), descriptor_inputs()].into_iter().flatten().collect()
}
