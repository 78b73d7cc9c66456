//! Tests `plimsoll report` and `plimsoll rerun`: pages in a real browser, other formats, and files
//! without a report.

use crate::test_support::{
    CommandOutcome, copy_recorded_run_file, create_new_folder, plimsoll, start_baseline, wait_for_exit,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Loads a page in headless Chromium. Standard output is the document after its scripts have run;
/// standard error contains the console's messages.
fn load_page_in_chromium(page: &Path) -> CommandOutcome {
    let profile = create_new_folder("browser");
    let child = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .args(["--enable-logging=stderr", "--v=0", "--window-size=1000,2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("chromium is needed for the end-to-end tests (apt-get install chromium)");
    wait_for_exit(child)
}

/// A script that moves a pointer over every chart, zooms in and out, and writes its observations
/// into a new element.
const CHART_TEST_SCRIPT: &str = r#"<script>
const seen = [];
try {
  for (const plot of document.querySelectorAll(".plot")) {
    const svg = plot.querySelector("svg"), box = svg.getBoundingClientRect();
    // A chart that is drawn for another width of the window is hidden, and has width 0.
    if (box.width === 0) continue;
    const places = JSON.parse(svg.dataset.places || "[]");
    const middle = places[Math.floor(places.length / 2)] || [0, 0];
    const scale = box.width / svg.viewBox.baseVal.width;
    const at = { clientX: box.left + middle[0] * scale, clientY: box.top + middle[1] * scale, bubbles: true };
    svg.dispatchEvent(new PointerEvent("pointermove", at));
    const tip = plot.querySelector(".tip");
    const read = tip && !tip.hidden ? tip.textContent : "NOTHING";
    const [closer, , all] = plot.nextElementSibling.querySelectorAll("button");
    closer.click();
    const moved = svg.querySelectorAll("g.z > [transform]").length;
    const shown = plot.nextElementSibling.querySelector("span").textContent;
    const ticks = [...svg.querySelectorAll("g:not([class]) > text")].length;
    // If a chart has vertical axes that adapt, the axes fit the part of the chart that is shown
    // after zooming in.
    const sides = [...svg.querySelectorAll("g.v")], hidden = () => sides.filter(g => g.style.display === "none").length;
    const fits = svg.querySelector("g.z[data-scale]") === null || hidden() > 0;
    all.click();
    const fitted = fits && hidden() === 0;
    const left = svg.querySelectorAll("g.z > [transform]").length;
    seen.push([read.includes(middle[2].split("\n")[0]) ? "READ" : "WRONG " + read, "moved", moved > 0, "fitted", fitted, shown, ticks > 0, "left", left].join(" | "));
  }
} catch (error) { seen.push("THROWN " + error); }
const out = document.createElement("pre");
out.id = "seen";
out.textContent = seen.join("\n");
document.body.append(out);
</script></body>"#;

/// Loads a copy of a page with the script `CHART_TEST_SCRIPT`. Returns one line of observations for
/// each chart. The page must write nothing to the browser's console.
fn probe_page_charts(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let copy = page.with_extension("probed.html");
    std::fs::write(&copy, text.replace("</body>", CHART_TEST_SCRIPT)).expect("written");
    let done = load_page_in_chromium(&copy);
    let console: Vec<&str> = done.stderr.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
    assert!(done.stdout.contains("class=\"tools on\""), "the script ran: {}", done.stderr);
    let dom = done.stdout;
    let from = dom.find("<pre id=\"seen\">").unwrap_or_else(|| panic!("the probe left nothing: {}", done.stderr)) + 15;
    let to = from + dom[from..].find("</pre>").expect("an end");
    dom[from..to].lines().map(str::to_owned).collect()
}

pub fn assert_works_in_a_browser(page: &Path, charts: usize) {
    let text = std::fs::read_to_string(page).expect("a page");
    assert!(text.len() < 1_000_000, "{} bytes", text.len());
    let seen = probe_page_charts(page);
    assert_eq!(seen.len(), charts, "{seen:?}");
    for line in seen {
        assert!(
            line.starts_with("READ | moved | true | fitted | true | Shown: ") && line.ends_with("| true | left | 0"),
            "{line}"
        );
    }
}

#[test]
fn a_page_works_in_a_real_browser() {
    let file = PathBuf::from(copy_recorded_run_file("run"));
    let done = plimsoll(&["report", file.to_str().expect("text")]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let page = file.with_extension("html");
    assert_eq!(done.stdout, format!("report: {}\n", page.display()));
    assert_works_in_a_browser(&page, 4);
    let text = std::fs::read_to_string(&page).expect("a page");
    for part in [
        "<h1>",
        "<h2>Environment</h2>",
        "plimsoll rerun",
        "<dt>seed</dt><dd>5</dd>",
        "role=\"img\"",
        "The server during the load",
    ] {
        assert!(text.contains(part), "{part} is missing");
    }
}

/// Checks the pages of searches and sweeps in a real browser. The page that a command writes equals
/// the page of `report`; `screens.rs` and `sweep.rs` check that the page exists.
#[test]
fn pages_of_searches_and_sweeps_work_in_a_real_browser() {
    for (name, charts) in [("find", 1..), ("sweep-a", 2..)] {
        let file = PathBuf::from(copy_recorded_run_file(name));
        let done = plimsoll(&["report", file.to_str().expect("text")]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let page = file.with_extension("html");
        let drawn = std::fs::read_to_string(&page).expect("a page").matches("<figure>").count();
        assert!(charts.contains(&drawn), "{name}: {drawn}");
        assert_works_in_a_browser(&page, drawn);
    }
}

#[test]
fn the_other_report_formats_agree() {
    let file = PathBuf::from(copy_recorded_run_file("run"));
    let path = file.to_str().expect("text");
    let markdown = plimsoll(&["report", path, "--format", "md"]);
    assert!(markdown.stdout.contains(" requests/s succeeded") && markdown.stdout.contains("- command: "));
    // Even a stalled machine meets the first SLO, and no machine meets the second SLO.
    let junit = plimsoll(&["report", path, "--format", "junit", "--slo", "success>=1%, p99<=1h"]);
    assert!(junit.stdout.contains("tests=\"2\" failures=\"0\" skipped=\"0\""), "{}", junit.stdout);
    let junit = plimsoll(&["report", path, "--format", "junit", "--slo", "p50<=1ns"]);
    assert!(
        junit.stdout.contains("failures=\"1\"") && junit.stdout.contains("<failure message=\"it was "),
        "{}",
        junit.stdout
    );
    let json = plimsoll(&["report", path, "--format", "json"]).json();
    assert_eq!(json["schema"], "plimsoll.run/1");
    assert!(json["url"].as_str().is_some_and(|url| url.ends_with("/bytes/100")), "{}", json["url"]);
    let svg = plimsoll(&["report", path, "--chart", "percentiles"]);
    assert!(svg.stdout.starts_with("<svg ") && !svg.stdout.contains("data-places"), "{}", svg.stdout);
    // Every kind of study has a chart of its own.
    for kind in ["run", "sweep-a", "find", "one-thread", "overload", "prove", "ladder"] {
        let file = copy_recorded_run_file(kind);
        let chart = plimsoll(&["report", &file, "--format", "svg"]);
        assert!(chart.code == 0 && chart.stdout.starts_with("<svg "), "{kind}: {}", chart.stderr);
    }
    let page = file.with_file_name("both.html");
    let both = plimsoll(&["report", path, path, "-o", page.to_str().expect("text")]);
    assert_eq!((both.code, both.stdout.as_str()), (0, ""), "{}", both.stderr);
    assert_eq!(std::fs::read_to_string(&page).expect("a page").matches("<h1>").count(), 1);

    for (arguments, expect) in [
        (vec!["report", path, "-o", "chart.gif"], "use .html"),
        (vec!["report", path, "--format", "png"], if cfg!(feature = "png") { "-o FILE.png" } else { "without PNG" }),
        (vec!["report", path, "--format", "md", "--chart", "time"], "--chart"),
        (vec!["report", path, path, "--format", "svg"], "give one run file for the chart"),
        (vec!["report", path, "--chart", "line"], "contains no search"),
        (vec!["report", path, "--chart", "evidence"], "contains no explanation"),
        (vec!["report", "absent.plimsoll"], "cannot be read"),
        (vec!["report", path, "--slo", "fast"], "--slo"),
        (vec!["report", path, "-o", "/proc/no/page.html"], "cannot be written"),
    ] {
        let done = plimsoll(&arguments);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.lines().count() == 1 && done.stderr.contains(expect), "{arguments:?}: {}", done.stderr);
    }
}

#[test]
fn a_recorded_run_is_repeated_with_its_seed() {
    let server = start_baseline(1);
    let folder = create_new_folder("rerun");
    let (first, second) = (folder.join("first.plimsoll"), folder.join("second.plimsoll"));
    let (first, second) = (first.to_str().expect("text"), second.to_str().expect("text"));
    let url = format!("{}/healthz?key=s3cret", server.url);
    let arguments =
        ["run", &url, "-H", "Authorization: s3cret", "--rate", "200", "-d", "300ms", "--quiet", "-o", first];
    let done = plimsoll(&arguments);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let refused = plimsoll(&["rerun", first]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--url"), "{}", refused.stderr);
    let refused = plimsoll(&["rerun", first, "--url", &url]);
    assert!(refused.code == 2 && refused.stderr.contains("-H 'Authorization"), "{}", refused.stderr);
    let again = plimsoll(&["rerun", first, "--url", &url, "-H", "Authorization: s3cret", "-o", second]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let documents = plimsoll(&["show", "--json", first, second]).json();
    assert_eq!(documents[0]["seed"], documents[1]["seed"]);
    assert_eq!(documents[0]["load"], documents[1]["load"]);
    assert!(!documents.to_string().contains("s3cret"));
}
