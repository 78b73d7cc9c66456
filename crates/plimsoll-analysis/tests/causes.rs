//! Tests that every cause that plimsoll can name has a complete page in the documentation.

use plimsoll_analysis::explain::Cause;
use std::path::Path;

#[test]
fn every_cause_has_a_documentation_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes");
    let index = std::fs::read_to_string(folder.join("README.md")).expect("an index");
    for cause in Cause::ALL {
        let page = std::fs::read_to_string(folder.join(format!("{cause}.md"))).unwrap_or_default();
        assert!(page.starts_with(&format!("# `{cause}`: ")), "docs/causes/{cause}.md");
        for heading in [
            "What it looks like",
            "How to confirm it by hand",
            "What people do about it",
            "What it is often mistaken for",
        ] {
            let (_, section) = page.split_once(&format!("## {heading}\n")).unwrap_or_default();
            assert!(section.len() > 40, "{cause}: {heading}");
        }
        assert!(index.contains(&format!("[`{cause}`]({cause}.md)")), "{cause} is not in the index");
    }
}
