//! Parses the name-value pairs of a URL's query string or of a submitted form ([`Query`]).
//!
//! Not here: the meaning of the pairs.

use url::form_urlencoded;

/// The maximum number of name-value pairs that are parsed. Further pairs are ignored.
const PAIRS_MAX: usize = 100;

/// The name-value pairs of a query string or form, in order. A name may occur several times.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the query string of a URL, or the body of a submitted form.
    pub fn parse(bytes: &[u8]) -> Query {
        Query(form_urlencoded::parse(bytes).into_owned().take(PAIRS_MAX).collect())
    }

    /// Returns the first non-empty value of a name, without surrounding spaces.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all_values(name).next()
    }

    /// Returns all non-empty values of a name, without surrounding spaces.
    pub fn all_values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let named: Vec<&str> = self.0.iter().filter(|pair| pair.0 == name).map(|pair| pair.1.trim()).collect();
        named.into_iter().filter(|value| !value.is_empty())
    }

    /// Returns the name-value pairs as a query string, with `value` in place of all earlier values
    /// of `name`.
    pub fn query_string_with(&self, name: &str, value: &str) -> String {
        let others = self.0.iter().filter(|pair| pair.0 != name);
        let mut query = form_urlencoded::Serializer::new(String::new());
        others.for_each(|(name, value)| _ = query.append_pair(name, value));
        query.append_pair(name, value).finish()
    }
}

/// Percent-encodes a text for use in a query string or a URL path.
pub fn percent_encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
