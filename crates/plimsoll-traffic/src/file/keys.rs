//! The keys of a traffic file, listed once for the parser and for its error messages.

/// The keys at the top level of a traffic file.
pub const TOP_LEVEL_KEYS: [&str; 7] = ["base", "request", "scenario", "setup", "cleanup", "load", "data"];

/// The keys of the `load` table.
pub const LOAD_KEYS: [&str; 5] = ["users", "rate", "arrivals", "sessions", "duration"];

/// The keys of a request that name an HTTP method; the value of each key is the path of the
/// request.
pub const HTTP_METHOD_KEYS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// The keys that every kind of request accepts: requests of a mix, steps, setup and cleanup
/// requests.
const COMMON_REQUEST_KEYS: [&str; 16] = [
    "get",
    "post",
    "put",
    "patch",
    "delete",
    "head",
    "options",
    "method",
    "url",
    "headers",
    "body",
    "json",
    "multipart",
    "raw",
    "timeout",
    "expect",
];

/// Joins three lists of keys at compile time; `N` is the total number of keys.
const fn concat_keys<const A: usize, const B: usize, const C: usize, const N: usize>(
    first: [&'static str; A],
    then: [&'static str; B],
    last: [&'static str; C],
) -> [&'static str; N] {
    assert!(A + B + C == N);
    let (mut all, mut n) = ([""; N], 0);
    while n < N {
        all[n] = if n < A {
            first[n]
        } else if n < A + B {
            then[n - A]
        } else {
            last[n - A - B]
        };
        n += 1;
    }
    all
}

/// The keys of a request in a mix. Requests of a mix are drawn at random by weight.
pub const REQUEST_KEYS: [&str; 19] = concat_keys(["name", "weight"], COMMON_REQUEST_KEYS, ["follow"]);

/// The keys of a scenario.
pub const SCENARIO_KEYS: [&str; 5] = ["name", "weight", "connection", "cookies", "step"];

/// The keys of a scenario step: the keys of a request without `weight`, and further keys for steps.
pub const STEP_KEYS: [&str; 27] = concat_keys(
    ["name"],
    COMMON_REQUEST_KEYS,
    ["follow", "capture", "think", "repeat", "times", "if", "unless", "once", "on_fail", "step"],
);

/// The keys of a setup or cleanup request: the keys of a request without `weight`, and `capture`,
/// `repeat` and `on_fail`.
pub const SETUP_CLEANUP_KEYS: [&str; 21] =
    concat_keys(["name"], COMMON_REQUEST_KEYS, ["follow", "capture", "repeat", "on_fail"]);

/// The keys of a `data` table, which names a file of data rows.
pub const DATA_KEYS: [&str; 3] = ["file", "pick", "each"];

/// The keys of a capture that is written as a table.
pub const CAPTURE_KEYS: [&str; 2] = ["from", "default"];

/// The keys of one part of a multipart form.
pub const FORM_PART_KEYS: [&str; 4] = ["text", "file", "type", "filename"];

/// The keys of an `expect` table, the expectations of a response.
pub const EXPECT_KEYS: [&str; 5] = ["status", "json", "header", "body", "within"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::json;
    use crate::file::tree::TreeNode;

    /// Returns the node that a path of keys leads to.
    fn node_at<'a>(node: &'a TreeNode, path: &[&str]) -> &'a TreeNode {
        path.iter().fold(node, |node, key| node.open_table("a schema").expect("a table").get(key).expect(key))
    }

    #[test]
    fn the_published_schema_has_these_keys() {
        let schema =
            json::parse_json_tree(include_str!("../../../../docs/reference/traffic.schema.json")).expect("JSON");
        for (path, keys) in [
            (&["properties"][..], &TOP_LEVEL_KEYS[..]),
            (&["$defs", "request", "properties"], &REQUEST_KEYS),
            (&["$defs", "request", "properties", "expect", "properties"], &EXPECT_KEYS),
            (&["$defs", "data", "properties"], &DATA_KEYS),
            (&["$defs", "capture", "properties"], &CAPTURE_KEYS),
            (&["$defs", "part", "properties"], &FORM_PART_KEYS),
            (&["$defs", "scenario", "properties"], &SCENARIO_KEYS),
            (&["$defs", "step", "properties"], &STEP_KEYS),
            (&["$defs", "once", "properties"], &SETUP_CLEANUP_KEYS),
            (&["$defs", "load", "properties"], &LOAD_KEYS),
        ] {
            let table = node_at(&schema, path).open_table("properties").expect("a table");
            let named: Vec<&str> = table.entries.iter().map(|(key, _)| key.name.as_str()).collect();
            assert_eq!(named, keys, "{path:?}");
        }
        assert!(HTTP_METHOD_KEYS.iter().all(|verb| REQUEST_KEYS.contains(verb) && STEP_KEYS.contains(verb)));
        assert!(REQUEST_KEYS.iter().all(|key| *key == "weight" || STEP_KEYS.contains(key)));
    }
}
