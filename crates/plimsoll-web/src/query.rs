//! Names and values of a query or a form ([`Query`]).
//!
//! Not here: what they mean.

use url::form_urlencoded;

/// Most pairs that are read.
const PAIRS_MAX: usize = 100;

/// Names and values, in order.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Those of a query, or of a body that a form sent.
    pub fn parse(bytes: &[u8]) -> Query {
        Query(form_urlencoded::parse(bytes).into_owned().take(PAIRS_MAX).collect())
    }

    /// The first value of a name that is not empty, without space around it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a name that are not empty.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let named: Vec<&str> = self.0.iter().filter(|pair| pair.0 == name).map(|pair| pair.1.trim()).collect();
        named.into_iter().filter(|value| !value.is_empty())
    }

    /// The same with one value of a name, as a query.
    pub fn replace(&self, name: &str, value: &str) -> String {
        let others = self.0.iter().filter(|pair| pair.0 != name);
        let mut query = form_urlencoded::Serializer::new(String::new());
        others.for_each(|(name, value)| _ = query.append_pair(name, value));
        query.append_pair(name, value).finish()
    }
}

/// A text as a part of a query or a path.
pub fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
