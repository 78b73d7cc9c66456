//! What is wrong with a command line of curl, in words. Not here: who finds it.

/// Why a command line of curl is not understood. Values are never repeated: there may be secrets
/// among them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CurlError {
    /// A quotation mark has no other.
    #[error("it ends within a quotation ({0}): copy all of it")]
    Quotation(char),
    /// It is another command.
    #[error("it is no command line of curl, which begins with that word: copy all of it")]
    NotCurl,
    /// It asks nothing.
    #[error("it names no URL")]
    NoUrl,
    /// It asks several things.
    #[error("it names {0} URLs, and one is asked: give one")]
    Urls(usize),
    /// An option that is none of those known.
    #[error("the option {0} is not understood: leave it out")]
    Unknown(String),
    /// An option at the end, which needs a value.
    #[error("the option {0} needs a value")]
    NoValue(String),
    /// A value that cannot be.
    #[error("the value of {0} is not understood: write {1}")]
    Value(String, &'static str),
    /// Something that a shell would fill in.
    #[error("a shell would fill in {0}, and none reads this line: write the value in its place")]
    Shell(String),
    /// There is another command after it.
    #[error("another command follows it, and one is asked: copy the first alone")]
    Commands,
    /// Its URL stands for several.
    #[error("its URL has {0}, by which curl asks several URLs: write one, or add -g where the sign stands for itself")]
    Glob(char),
    /// Data of two kinds.
    #[error("it has both -F and -d, which curl does not send either: leave one out")]
    TwoBodies,
}
