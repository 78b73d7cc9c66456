//! The common elements of every HTML page: title, navigation, style and script. All inserted text
//! is escaped.
//!
//! Not here: the content of pages (`views`).

use plimsoll_report::chart::escape_xml;
use plimsoll_report::page;
use plimsoll_report::visible_controls::escape_to_one_line;

/// The JavaScript of the HTML pages. The script updates the progress of a running study and copies
/// command lines to the clipboard. In the form that starts a study, the script shows only the
/// fields of the chosen study.
pub const APP_SCRIPT: &str = include_str!("app.js");
const APP_STYLE: &str = include_str!("app.css");

/// Returns the CSS of all pages: the style of reports, and the style of the common elements.
pub fn app_style() -> String {
    format!("{}{APP_STYLE}", page::page_style())
}

/// Escapes a text for insertion into HTML. Control characters are made visible.
pub fn escape_html(text: &str) -> String {
    escape_xml(&escape_to_one_line(text))
}

/// The pages that the navigation lists, as pairs of URL path and name.
const NAVIGATION_PAGES: [(&str, &str); 3] = [("/", "Services"), ("/runs", "Runs"), ("/start", "Start")];

/// Renders a complete HTML page. `body` is HTML and is not escaped. With `refresh_s`, a browser
/// without scripts reloads the page after this number of seconds.
pub fn page(title: &str, path: &str, body: &str, refresh_s: Option<u32>) -> String {
    let entry = |(address, name): (&str, &str)| match address == path {
        true => format!("<a href=\"{address}\" aria-current=\"page\">{name}</a>"),
        false => format!("<a href=\"{address}\">{name}</a>"),
    };
    let pages: String = NAVIGATION_PAGES.into_iter().map(entry).collect();
    let refresh = refresh_s.map_or_else(String::new, |seconds| {
        format!("<noscript><meta http-equiv=\"refresh\" content=\"{seconds}\"></noscript>\n")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{refresh}<title>{} - plimsoll</title>\n\
         <link rel=\"stylesheet\" href=\"/app.css\">\n<link rel=\"icon\" href=\"data:,\">\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#content\">Skip to the content</a>\n\
         <header><nav aria-label=\"Pages\"><a class=\"mark\" href=\"/\">plimsoll</a>{pages}</nav></header>\n\
         <main id=\"content\">\n{body}</main>\n\
         <script src=\"/page.js\" defer></script>\n<script src=\"/flame.js\" defer></script>\n\
         <script src=\"/app.js\" defer></script>\n\
         </body>\n</html>\n",
        escape_html(title),
    )
}

/// Renders a page that states why the requested page cannot be shown.
pub fn problem_page(title: &str, why: &str) -> String {
    let why = escape_html(&capitalise_first_letter(why));
    page(
        title,
        "",
        &format!("<h1>{}</h1>\n<p>{why}.</p>\n<p><a href=\"/\">All services</a></p>\n", escape_html(title)),
        None,
    )
}

/// Returns the text with its first letter in upper case.
pub fn capitalise_first_letter(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_text_is_escaped() {
        let hostile = "</title><script>alert(1)</script>\u{202e}\"'&";
        for page in [page(hostile, "/", "", Some(2)), problem_page(hostile, hostile)] {
            assert!(!page.contains("<script>") && !page.contains('\u{202e}'), "{page}");
            // The page contains no inline script, because the content security policy would block
            // it.
            assert!(!page.contains(" onclick=") && page.matches("<script").count() == 3);
        }
    }

    #[test]
    fn page_assets_are_small() {
        let bytes = app_style().len()
            + APP_SCRIPT.len()
            + page::page_script().len()
            + plimsoll_report::flame::flame_script().len();
        assert!(bytes < 150_000, "{bytes}");
    }
}
