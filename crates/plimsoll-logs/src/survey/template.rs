//! Builds the template of a path: the path without its query, with variable parts replaced by
//! `{id}`, `{uuid}`, `{hash}` or `{date}`. The template of each segment depends on that segment
//! only, so a path always has the same template.

/// Writes the template of `path` to `out`. Segments with braces stay unchanged.
pub(crate) fn write_path_template(path: &[u8], out: &mut Vec<u8>) {
    out.clear();
    // Path parameters such as `;jsessionid=...` are removed.
    let path = memchr::memchr(b';', path).map_or(path, |at| &path[..at]);
    for (number, segment) in path.split(|b| *b == b'/').enumerate() {
        if number > 0 {
            out.push(b'/');
        }
        append_segment_template(segment, out);
    }
}

fn append_segment_template(segment: &[u8], out: &mut Vec<u8>) {
    if segment.contains(&b'{') {
        return out.extend_from_slice(segment);
    }
    if is_jwt(segment) || is_grouped_code(segment) || is_random_letters(segment) {
        return out.extend_from_slice(b"{hash}");
    }
    if !segment.iter().any(u8::is_ascii_digit) {
        return out.extend_from_slice(segment);
    }
    if is_number(segment) {
        return out.extend_from_slice(b"{id}");
    }
    if segment.contains(&b'@') || segment.to_ascii_lowercase().windows(3).any(|w| w == b"%40") {
        // An e-mail address identifies a person, so the address counts as an id.
        return out.extend_from_slice(b"{id}");
    }
    if is_random(segment) {
        return out.extend_from_slice(b"{hash}");
    }
    let mut rest = segment;
    while !rest.is_empty() {
        if let Some(length) = uuid_length(rest) {
            out.extend_from_slice(b"{uuid}");
            rest = &rest[length..];
            continue;
        }
        if let Some(length) = date_length(rest) {
            out.extend_from_slice(b"{date}");
            rest = &rest[length..];
            continue;
        }
        let length = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        if word.iter().all(u8::is_ascii_digit) && !word.is_empty() && !is_version(segment, word) {
            out.extend_from_slice(b"{id}");
        } else if is_hash(word) {
            out.extend_from_slice(b"{hash}");
        } else {
            out.extend_from_slice(word);
        }
        let marks = after.iter().position(u8::is_ascii_alphanumeric).unwrap_or(after.len());
        out.extend_from_slice(&after[..marks]);
        rest = &after[marks..];
    }
}

/// Returns whether a segment is a number, possibly with punctuation: `42`, `-3.5`, `10.0.0.1`,
/// `48.85,2.35`. A segment that begins with a date does not count as a number.
fn is_number(segment: &[u8]) -> bool {
    let plain = segment.iter().all(|b| b.is_ascii_digit() || b"+-.,:_~".contains(b));
    plain && date_length(segment) != Some(segment.len()) && date_and_time(segment).is_none()
}

fn date_and_time(segment: &[u8]) -> Option<usize> {
    date_length(segment)
}

/// Returns whether the number `word` is part of a version in a file name, as in
/// `jquery-3.6.0.min.js`.
fn is_version(segment: &[u8], word: &[u8]) -> bool {
    let at = word.as_ptr() as usize - segment.as_ptr() as usize;
    let digit = |place: Option<usize>| place.and_then(|p| segment.get(p)).is_some_and(u8::is_ascii_digit);
    let point = |place: Option<usize>| place.and_then(|p| segment.get(p)) == Some(&b'.');
    let end = at + word.len();
    (point(Some(end)) && digit(Some(end + 1))) || (point(at.checked_sub(1)) && digit(at.checked_sub(2)))
}

/// Returns the length of the UUID at the beginning of `text`, bytes; `None` if there is no UUID.
fn uuid_length(text: &[u8]) -> Option<usize> {
    let head = text.get(..36)?;
    let fits = head.iter().enumerate().all(|(at, b)| match at {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => b.is_ascii_hexdigit(),
    });
    (fits && !text.get(36).is_some_and(u8::is_ascii_alphanumeric)).then_some(36)
}

/// Returns the length of the date at the beginning of `text`, such as `2024-05-06`, bytes. The
/// length includes a time of day after the date.
fn date_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize, to: usize| -> Option<u32> {
        let part = text.get(from..to).filter(|part| part.iter().all(u8::is_ascii_digit))?;
        Some(part.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
    };
    let mark = *text.get(4).filter(|b| matches!(b, b'-' | b'_' | b'.'))?;
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let fits = text.get(7) == Some(&mark)
        && (1900..2100).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day);
    if !fits || text.get(10).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    if matches!(text.get(10), Some(b'T' | b't')) {
        let time = text[11..].iter().take_while(|b| b.is_ascii_digit() || b":.+-Zz%".contains(b)).count();
        return Some(11 + time);
    }
    (!text.get(10).is_some_and(u8::is_ascii_alphabetic)).then_some(10)
}

/// Returns whether a word looks like a hash. A hash has at least eight hexadecimal digits with
/// letters among them, or is a long mix of letters and decimal digits.
fn is_hash(word: &[u8]) -> bool {
    let digits = word.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = word.len() - digits;
    if letters == 0 || digits == 0 {
        return false;
    }
    let hexadecimal = word.iter().all(u8::is_ascii_hexdigit);
    if hexadecimal {
        return word.len() >= 8;
    }
    let upper = word.iter().any(u8::is_ascii_uppercase);
    let lower = word.iter().any(u8::is_ascii_lowercase);
    (word.len() >= 16 && digits >= 2 && character_kind_changes(word) >= 4)
        || (word.len() >= 10 && upper && lower && digits >= 2 && character_kind_changes(word) >= 5)
}

/// Returns whether a segment looks like a random id: letters, digits, `-` and `_` alternate more
/// often than in words.
fn is_random(segment: &[u8]) -> bool {
    let plain = segment.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'='));
    let digits = segment.iter().filter(|b| b.is_ascii_digit()).count();
    let upper = segment.iter().any(u8::is_ascii_uppercase);
    let lower = segment.iter().any(u8::is_ascii_lowercase);
    plain
        && upper
        && lower
        && segment.len() >= 16
        && digits >= 2
        && digits * 10 < segment.len() * 6
        && character_kind_changes(segment) * 3 >= segment.len()
        && uuid_length(segment).is_none()
}

/// Returns whether a segment is a signed token (JWT): three parts, of which the first is base64 of
/// JSON.
fn is_jwt(segment: &[u8]) -> bool {
    let fits = |b: &u8| b.is_ascii_alphanumeric() || b"-_=.".contains(b);
    segment.starts_with(b"eyJ") && segment.iter().filter(|b| **b == b'.').count() == 2 && segment.iter().all(fits)
}

/// Returns whether a segment is a code in groups of equal length, such as `A1B2-C3D4-E5F6`.
fn is_grouped_code(segment: &[u8]) -> bool {
    let groups = || segment.split(|b| *b == b'-');
    let length = groups().next().map_or(0, <[u8]>::len);
    let is_mixed = |group: &&[u8]| group.iter().any(u8::is_ascii_digit) && group.iter().any(u8::is_ascii_uppercase);
    let fits = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'-';
    length >= 3
        && segment.iter().all(fits)
        && groups().all(|group| group.len() == length)
        && groups().filter(is_mixed).count() >= 2
}

/// Returns whether a segment has capital letters at random positions. In names a capital letter is
/// followed by several lower-case letters.
fn is_random_letters(segment: &[u8]) -> bool {
    let kind = |b: &u8| (b.is_ascii_uppercase(), b.is_ascii_lowercase());
    let uppers = segment.iter().filter(|b| b.is_ascii_uppercase()).count();
    let borders = segment.windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1])).count();
    segment.len() >= 16
        && segment.iter().all(u8::is_ascii_alphanumeric)
        && segment.iter().any(u8::is_ascii_lowercase)
        && uppers * 3 > segment.len()
        && borders * 20 > segment.len() * 7
}

/// Returns the number of changes between letters and digits, and from lower-case letters to
/// capitals.
fn character_kind_changes(word: &[u8]) -> usize {
    let kind = |b: u8| match b {
        b'0'..=b'9' => 1,
        b'A'..=b'Z' => 2,
        b'a'..=b'z' => 3,
        _ => 0,
    };
    let change = |pair: &&[u8]| {
        let (a, b) = (kind(pair[0]), kind(pair[1]));
        a != 0 && b != 0 && a != b && (a, b) != (2, 3)
    };
    word.windows(2).filter(change).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_placeholders_and_names_are_kept() {
        for (path, expect) in [
            ("/", "/"),
            ("/items", "/items"),
            ("/items/", "/items/"),
            ("/items/42", "/items/{id}"),
            ("/items/42/parts/7", "/items/{id}/parts/{id}"),
            ("/v1/items/42", "/v1/items/{id}"),
            ("/api/v2.1/x", "/api/v2.1/x"),
            ("/oauth2/token", "/oauth2/token"),
            ("/s3/h264/utf8", "/s3/h264/utf8"),
            ("/u/6fa459ea-ee8a-3ca4-894e-db77e160355e", "/u/{uuid}"),
            ("/u/6FA459EA-EE8A-3CA4-894E-DB77E160355E/x", "/u/{uuid}/x"),
            ("/f/order-6fa459ea-ee8a-3ca4-894e-db77e160355e.pdf", "/f/order-{uuid}.pdf"),
            ("/o/507f1f77bcf86cd799439011", "/o/{hash}"),
            ("/c/3f2a9b1c0d", "/c/{hash}"),
            ("/static/main.3f2a9b1c.js", "/static/main.{hash}.js"),
            ("/static/jquery-3.6.0.min.js", "/static/jquery-3.6.0.min.js"),
            ("/y/V1StGXR8_Z5jdHi6B-myT", "/y/{hash}"),
            ("/jwt/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP", "/jwt/{hash}"),
            ("/invite/A1B2-C3D4-E5F6", "/invite/{hash}"),
            ("/reset/VRsrBvfC9mCagAwoGqaYrVnA", "/reset/{hash}"),
            ("/reset/eEcTfGGFukuewyPyLtxqmvB", "/reset/{hash}"),
            ("/api/GetCustomerOrderHistoryByDate", "/api/GetCustomerOrderHistoryByDate"),
            ("/api/getHTMLDocumentsByURL", "/api/getHTMLDocumentsByURL"),
            ("/api/ListOfAllMyThingsToDoNowAndAgain", "/api/ListOfAllMyThingsToDoNowAndAgain"),
            ("/docs/UTF8-SHA256", "/docs/UTF8-SHA256"),
            ("/ulid/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/ulid/{hash}"),
            ("/reports/2024-05-06", "/reports/{date}"),
            ("/reports/2024-05-06T10:00:00Z", "/reports/{date}"),
            ("/reports/2024-05-06.csv", "/reports/{date}.csv"),
            ("/2024/05/06/news", "/{id}/{id}/{id}/news"),
            ("/img/photo_0042.jpg", "/img/photo_{id}.jpg"),
            ("/users/42.json", "/users/{id}.json"),
            ("/order-123", "/order-{id}"),
            ("/geo/48.85,2.35", "/geo/{id}"),
            ("/ip/10.0.0.1", "/ip/{id}"),
            ("/users/ann4@example.org", "/users/{id}"),
            ("/facade/deadbeef", "/facade/deadbeef"),
            ("/My-Great-Post-From-2024-Edition", "/My-Great-Post-From-{id}-Edition"),
            ("/a;jsessionid=99AB", "/a"),
            ("/x/{}/9", "/x/{}/{id}"),
            ("*", "*"),
            ("", ""),
        ] {
            let mut out = Vec::new();
            write_path_template(path.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expect, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn templates_are_idempotent(path in "(/[a-zA-Z0-9_.~@%;{}-]{0,40}){0,4}") {
            let (mut once, mut twice) = (Vec::new(), Vec::new());
            write_path_template(path.as_bytes(), &mut once);
            write_path_template(&once, &mut twice);
            proptest::prop_assert_eq!(once, twice);
        }

        #[test]
        fn any_path_becomes_a_template_without_a_panic(path in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            write_path_template(&path, &mut Vec::new());
        }
    }
}
