//! Tests the pages of `plimsoll serve` in a real browser. The browser starts, follows, stops,
//! compares and shares a study through the pages alone. The tests use the widths of a phone and of
//! a desktop, in light and dark colours. `PLIMSOLL_PICTURES=DIR` saves a picture of each page.
//!
//! Not here: access control, and the API for programs (`serve`).

use crate::browser::Browser;
use crate::serve::ServeProcess;
use crate::test_support::{copy_recorded_run_file, create_new_folder, start_baseline};
use std::path::PathBuf;

/// Takes a picture of a page at each width and colour scheme, and checks that nothing lies outside
/// the screen.
fn check_page_appearance(browser: &mut Browser, name: &str) {
    for (width, is_dark) in [(390, false), (1400, false), (390, true), (1400, true)] {
        browser.set_window_and_theme(width, is_dark);
        let wide = browser.evaluate_in_page(
            "[document.documentElement.scrollWidth - document.documentElement.clientWidth, \
             [...document.querySelectorAll('main *')].filter(it => { const box = it.getBoundingClientRect(); \
             return box.width > 0 && box.right > innerWidth + 1 && !it.closest('.scroll, pre, svg, details:not([open])'); })\
             .slice(0, 3).map(it => it.outerHTML.slice(0, 120))]",
        );
        assert!(wide[0].as_f64().is_some_and(|beyond| beyond <= 0.0), "{name} at {width} px is wider: {wide}");
        assert_eq!(contrast_faults(browser), "", "{name} at {width} px, dark: {is_dark}");
        if let Some(dir) = std::env::var_os("PLIMSOLL_PICTURES").map(PathBuf::from) {
            std::fs::create_dir_all(&dir).expect("a folder");
            let scheme = if is_dark { "dark" } else { "light" };
            browser.save_screenshot(&dir.join(format!("{name}-{width}-{scheme}.png")));
        }
    }
    browser.set_window_and_theme(1400, false);
}

/// Returns the texts on the page whose contrast with the background is below 4.5 (WCAG AA). Texts
/// and backgrounds without a plain colour are skipped.
fn contrast_faults(browser: &mut Browser) -> String {
    let faults = browser.evaluate_in_page(
        r"(() => {
            const parse = text => (text.match(/[\d.]+/g) || []).map(Number);
            const light = rgb => { const [r, g, b] = rgb.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
                return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
            const behind = it => { for (; it; it = it.parentElement) { const c = getComputedStyle(it).backgroundColor;
                if (c.startsWith('rgb') && (parse(c)[3] ?? 1) === 1) return parse(c).slice(0, 3); if (c.startsWith('color')) return null; }
                return null; };
            const found = [];
            for (const it of document.querySelectorAll('main *, nav *')) {
                const own = [...it.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
                if (!own || it.closest('svg') || it.getBoundingClientRect().width === 0) continue;
                const style = getComputedStyle(it), back = behind(it), front = parse(style.color).slice(0, 3);
                if (!back || !style.color.startsWith('rgb')) continue;
                const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
                if (ratio < 4.5) found.push(`${it.tagName} '${it.textContent.trim().slice(0, 30)}' ${ratio.toFixed(2)}`);
            }
            return [...new Set(found)].slice(0, 3).join('; ');
        })()",
    );
    faults.as_str().expect("text").to_owned()
}

/// Checks that a new user can do everything in the browser, with only the link that `serve` prints.
#[test]
fn a_web_user_starts_watches_stops_compares_and_shares_runs() {
    let server = start_baseline(1);
    let store = create_new_folder("serve-browser");
    for (number, kept) in ["find-a", "find-b", "overload", "prove"].iter().enumerate() {
        let word = kept.split('-').next().expect("a word");
        std::fs::copy(copy_recorded_run_file(kept), store.join(format!("{word}-{}-4194999.plimsoll", 100 + number)))
            .expect("copied");
    }
    let pages = ServeProcess::start(&store);
    let origin = format!("http://{}", pages.address);
    let mut browser = Browser::start(&origin);
    browser.open(&format!("{origin}/login?token={}", pages.token));
    browser.wait("services", "document.querySelector('h1').textContent === 'Services'");
    check_page_appearance(&mut browser, "services");

    // The browser starts a study. Only the fields of the chosen study are visible.
    browser.click("nav a[href='/start']");
    browser.wait("the form", "!!document.querySelector('#study')");
    // The page may show its form before its script listens, so the choice is repeated.
    let chosen = "document.querySelector('#study').value = 'run', \
                  document.querySelector('#study').dispatchEvent(new Event('change'))";
    let seen =
        "[...document.querySelectorAll('.fields input')].filter(it => it.offsetParent).map(it => it.name).join()";
    let wanted = "url,rate,concurrency,duration,method,header,tag";
    browser.wait("the fields of a run alone", &format!("({chosen}, {seen} === '{wanted}')"));
    browser.fill("#url", &format!("{}/delay/20", server.url.trim_end_matches('/')));
    browser.fill("#concurrency", "2");
    browser.fill("#duration", "120s");
    check_page_appearance(&mut browser, "start");
    browser.click("button[name=show]");
    browser.wait("its command line", "!!document.querySelector('#line')");
    let line = browser.evaluate_in_page("document.querySelector('#line').textContent");
    assert!(
        line.as_str().is_some_and(|line| line.starts_with("plimsoll run --concurrency=2 --duration=120s")),
        "{line}"
    );
    check_page_appearance(&mut browser, "start-line");

    // The browser follows the study: figures appear without a reload. The browser then stops the
    // study.
    browser.click("button.first");
    browser.wait("live figures", "!!document.querySelector('[data-follow] .meter span')");
    browser.wait("progress", "parseInt(document.querySelector('.meter span').style.width) > 0");
    check_page_appearance(&mut browser, "live");
    browser.click("form[action$='/stop'] button");
    browser.wait("its end", "document.querySelector('h1')?.textContent === 'The study has ended'");
    // The page may replace the link during the click, so the click is repeated.
    browser.wait("the run", "location.pathname.startsWith('/runs/') || document.querySelector('p.answer a')?.click()");
    check_page_appearance(&mut browser, "run");

    // The browser marks the run with a tag and a pin.
    browser.fill("#tag", "release=<b>1.4</b>");
    browser.click("form[action$='/marks'] button:not([name])");
    browser.wait("the tag", "document.body.innerText.includes('release=<b>1.4</b>')");
    browser.click("button[name=pin]");
    browser.wait("the pin", "document.querySelector('button[name=pin]')?.textContent === 'Unpin'");
    check_page_appearance(&mut browser, "marks");

    // The run can be shared as a page, a summary, a picture, and the run file.
    for (part, kind) in
        [("page.html", "text/html"), ("summary.md", "text/plain"), ("picture", "image/"), ("file", "application/")]
    {
        let file = browser.evaluate_in_page("location.pathname");
        let address = format!("{}/{part}", file.as_str().expect("text"));
        let shared = pages.get(&address);
        assert!(shared.status == 200 && shared.headers.contains(&format!("content-type: {kind}")), "{address}");
        let has_link = format!("!!document.querySelector('a[href=\"{address}\"]')");
        assert_eq!(browser.evaluate_in_page(&has_link), true, "{address}");
    }
    browser.click("a[href^='/start?again']");
    browser.wait("again", "document.body.innerText.includes('Again, as recorded')");
    assert_eq!(browser.evaluate_in_page("document.querySelector('#concurrency').value"), "2");
    check_page_appearance(&mut browser, "again");

    // The browser compares runs and deletes a run.
    browser.open(&format!("{origin}/runs"));
    check_page_appearance(&mut browser, "runs");
    browser.click("input[value='find-100-4194999.plimsoll']");
    browser.click("input[value='find-101-4194999.plimsoll']");
    browser.click("form[action='/compare'] button");
    browser.wait("the comparison", "location.pathname === '/compare' && !!document.querySelector('h1')");
    check_page_appearance(&mut browser, "compare");
    let three = ["find-100", "find-101", "overload-102"].map(|run| format!("run={run}-4194999.plimsoll")).join("&");
    browser.open(&format!("{origin}/compare?{three}"));
    assert_eq!(browser.evaluate_in_page("document.body.innerText.includes('not comparable with run A')"), true);
    check_page_appearance(&mut browser, "compare-three");
    browser.open(&format!("{origin}/runs/overload-102-4194999.plimsoll"));
    check_page_appearance(&mut browser, "overload");
    browser.click(".actions details summary");
    browser.click("form[action$='/delete'] button");
    browser
        .wait("the list", "location.pathname === '/runs' && !!document.querySelector('a[href^=\"/runs/find-100\"]')");
    assert!(!store.join("overload-102-4194999.plimsoll").exists());
    let service = browser.evaluate_in_page("document.querySelector('a[href^=\"/runs/find-100\"]').href");
    assert!(service.is_string());
    browser.open(&origin);
    browser.click("a[href^='/history']");
    browser.wait("the history", "location.pathname === '/history'");
    check_page_appearance(&mut browser, "history");
    assert_eq!(browser.page_errors, Vec::<String>::new());
    assert_eq!(browser.foreign_urls, Vec::<String>::new());
}
