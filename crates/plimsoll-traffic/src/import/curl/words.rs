//! Splits a curl command line into words. The splitting follows the rules of a POSIX shell (and of
//! bash, for `$'...'`), or of cmd.exe and Windows programs. Browsers copy command lines in the
//! notation of a POSIX shell and in the notation of cmd.exe.
//!
//! Only the first command is parsed, and its output redirections are skipped. Shell expansions and
//! further commands are errors. Not here: the meaning of the words.

use super::error::CurlError;

/// Words that may precede the command in copied text: a shell prompt, and programs that start other
/// programs.
const COMMAND_PREFIX_WORDS: [&str; 6] = ["$", "%", "sudo", "time", "exec", "command"];

/// Splits a command line into the words of the curl command.
pub fn split_curl_command(line: &str) -> Result<Vec<String>, CurlError> {
    let mut words = if is_cmd_line(line) { split_cmd_line(line) } else { ShellWords::read(line)? };
    // Assignments of variables before `curl` do not change the request.
    let is_before = |word: &str| {
        let name = word.split_once('=').map(|(name, _)| name);
        COMMAND_PREFIX_WORDS.contains(&word)
            || name.is_some_and(|name| !name.is_empty() && name.bytes().all(is_variable_name_byte))
    };
    let before = words.iter().take_while(|word| is_before(word)).count();
    words.drain(..before);
    Ok(words)
}

fn is_variable_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The shell's meaning of an unquoted word that is not an argument of the command.
enum ShellOperator {
    /// The end of the command.
    EndOfCommand,
    /// A redirection into the file that the next word names.
    RedirectToNextWord,
    /// A redirection whose file is in the same word, or a redirection to another descriptor.
    RedirectInWord,
}

fn shell_operator(word: &str) -> Option<ShellOperator> {
    if ["&&", "&"].contains(&word) {
        return Some(ShellOperator::EndOfCommand);
    }
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&').strip_prefix('>')?;
    let rest = rest.trim_start_matches(['>', '|']);
    Some(if rest.is_empty() { ShellOperator::RedirectToNextWord } else { ShellOperator::RedirectInWord })
}

#[derive(Default)]
struct ShellWords {
    words: Vec<String>,
    word: String,
    /// Whether a word has begun. `is_quoted` states whether a part of the word is quoted.
    is_begun: bool,
    is_quoted: bool,
    /// Whether the next word is the file of a redirection.
    skips_next: bool,
}

impl ShellWords {
    fn read(line: &str) -> Result<Vec<String>, CurlError> {
        let mut read = ShellWords::default();
        let mut rest = line.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\\' => match rest.next() {
                    // A backslash before a line break continues the line.
                    Some('\n') => {}
                    Some('\r') if rest.next_if_eq(&'\n').is_some() => {}
                    Some(escaped) => read.begin_quoted_part().push(escaped),
                    None => {}
                },
                '\'' => {
                    let word = read.begin_quoted_part();
                    loop {
                        match rest.next().ok_or(CurlError::UnclosedQuotation('\''))? {
                            '\'' => break,
                            plain => word.push(plain),
                        }
                    }
                }
                '"' => double_quoted(&mut rest, read.begin_quoted_part())?,
                '$' if rest.next_if_eq(&'\'').is_some() => ansi_quoted(&mut rest, read.begin_quoted_part())?,
                '$' | '`' => {
                    refuse_shell_expansion(c, &rest)?;
                    read.push_char(c);
                }
                '#' if !read.is_begun => while rest.next_if(|c| *c != '\n').is_some() {},
                '|' if !read.word.ends_with('>') => {
                    read.end_word();
                    if rest.next_if_eq(&'|').is_some() {
                        refuse_trailing_words(rest)?;
                    }
                    break;
                }
                ';' if rest.peek().is_none_or(|next| next.is_whitespace()) => {
                    read.end_word();
                    refuse_trailing_words(rest)?;
                    break;
                }
                c if c.is_whitespace() => match read.end_word() {
                    Some(ShellOperator::EndOfCommand) => {
                        refuse_trailing_words(rest)?;
                        break;
                    }
                    Some(ShellOperator::RedirectToNextWord) => read.skips_next = true,
                    Some(ShellOperator::RedirectInWord) | None => {}
                },
                plain => read.push_char(plain),
            }
        }
        read.end_word();
        Ok(read.words)
    }

    fn push_char(&mut self, c: char) {
        self.is_begun = true;
        self.word.push(c);
    }

    fn begin_quoted_part(&mut self) -> &mut String {
        (self.is_begun, self.is_quoted) = (true, true);
        &mut self.word
    }

    /// Ends the current word. Returns the shell's meaning of the word if the word is not an
    /// argument of the command.
    fn end_word(&mut self) -> Option<ShellOperator> {
        if !std::mem::take(&mut self.is_begun) {
            return None;
        }
        let word = std::mem::take(&mut self.word);
        let operator = if std::mem::take(&mut self.is_quoted) { None } else { shell_operator(&word) };
        if operator.is_none() && !std::mem::take(&mut self.skips_next) {
            self.words.push(word);
        }
        operator
    }
}

/// Returns an error if anything but blanks and comments follows the first command.
fn refuse_trailing_words(rest: Chars) -> Result<(), CurlError> {
    let rest: String = rest.collect();
    let is_more = rest.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'));
    if is_more { Err(CurlError::TrailingCommand) } else { Ok(()) }
}

/// Returns an error for a shell variable or command substitution. Names in lower case after `$` are
/// accepted, because OData URLs contain names such as `$filter`.
fn refuse_shell_expansion(c: char, rest: &Chars) -> Result<(), CurlError> {
    let text: String = rest.clone().take(40).collect();
    let name = text.strip_prefix('{').unwrap_or(&text);
    let end = name.find(|c: char| !c.is_ascii() || !is_variable_name_byte(c as u8)).unwrap_or(name.len());
    let is_name = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && !name[..end].bytes().any(|byte| byte.is_ascii_lowercase());
    match c {
        '`' => Err(CurlError::ShellExpansion("a command in backquotes".to_owned())),
        '$' if text.starts_with('(') => Err(CurlError::ShellExpansion("a command in $( )".to_owned())),
        '$' if is_name => Err(CurlError::ShellExpansion(format!("the variable ${}", &name[..end]))),
        _ => Ok(()),
    }
}

/// Parses the text between two `"` and appends it to `word`.
fn double_quoted(rest: &mut Chars, word: &mut String) -> Result<(), CurlError> {
    loop {
        match rest.next().ok_or(CurlError::UnclosedQuotation('"'))? {
            '"' => return Ok(()),
            '\\' => match rest.next().ok_or(CurlError::UnclosedQuotation('"'))? {
                '\n' => {}
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                plain => word.extend(['\\', plain]),
            },
            c => {
                if matches!(c, '$' | '`') {
                    refuse_shell_expansion(c, rest)?;
                }
                word.push(c);
            }
        }
    }
}

/// Parses the text between `$'` and `'` and appends it to `word`.
fn ansi_quoted(rest: &mut Chars, word: &mut String) -> Result<(), CurlError> {
    // The bytes are collected before UTF-8 decoding, because several escapes such as `\xc3\xa4`
    // form one character.
    let mut bytes = Vec::new();
    loop {
        let c = rest.next().ok_or(CurlError::UnclosedQuotation('\''))?;
        let plain = match c {
            '\'' => break,
            '\\' => match rest.next().ok_or(CurlError::UnclosedQuotation('\''))? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'v' => '\u{b}',
                'e' | 'E' => '\u{1b}',
                'x' => {
                    bytes.push(parse_hex_digits(rest, 2) as u8);
                    continue;
                }
                'u' => char::from_u32(parse_hex_digits(rest, 4)).unwrap_or(char::REPLACEMENT_CHARACTER),
                'U' => char::from_u32(parse_hex_digits(rest, 8)).unwrap_or(char::REPLACEMENT_CHARACTER),
                other => other,
            },
            plain => plain,
        };
        bytes.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
    }
    word.push_str(&String::from_utf8_lossy(&bytes));
    Ok(())
}

/// Parses at most `most` hexadecimal digits.
fn parse_hex_digits(rest: &mut Chars, most: usize) -> u32 {
    let mut value = 0u32;
    for _ in 0..most {
        let Some(digit) = rest.peek().and_then(|c| c.to_digit(16)) else { break };
        value = value << 4 | digit;
        rest.next();
    }
    value
}

/// Returns whether a line was written for cmd.exe: its lines end with `^`, or its first argument is
/// quoted with `^"`.
fn is_cmd_line(line: &str) -> bool {
    let may_continue = [" ^\n", " ^\r\n"].iter().any(|end| line.contains(end)) && !line.contains(" \\\n");
    let first = line.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    may_continue || first.starts_with("^\"")
}

/// Splits a command line for cmd.exe into words.
fn split_cmd_line(line: &str) -> Vec<String> {
    let line = strip_carets(line);
    let (mut words, mut word, mut is_begun, mut in_quotes) = (Vec::new(), String::new(), false, false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                let mut backslashes = 1;
                while rest.next_if_eq(&'\\').is_some() {
                    backslashes += 1;
                }
                is_begun = true;
                // In Windows programs, a backslash is an escape only before a quotation mark.
                if rest.peek() == Some(&'"') {
                    word.extend(std::iter::repeat_n('\\', backslashes / 2));
                    if backslashes % 2 == 1 {
                        word.extend(rest.next());
                    }
                } else {
                    word.extend(std::iter::repeat_n('\\', backslashes));
                }
            }
            '"' if in_quotes && rest.next_if_eq(&'"').is_some() => word.push('"'),
            '"' => (is_begun, in_quotes) = (true, !in_quotes),
            c if c.is_whitespace() && !in_quotes => {
                if std::mem::take(&mut is_begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            plain => {
                is_begun = true;
                word.push(plain);
            }
        }
    }
    if is_begun {
        words.push(word);
    }
    words
}

/// Removes the escapes of cmd.exe: outside quotes, `^` makes the next character literal.
fn strip_carets(line: &str) -> String {
    let line = line.replace("\r\n", "\n");
    let (mut out, mut in_quotes) = (String::new(), false);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '^' if !in_quotes => match rest.next() {
                // A `^` at the end of a line continues the line, and makes the first character of
                // the next line literal.
                Some('\n') => out.extend(rest.next()),
                plain => out.extend(plain),
            },
            '"' => {
                in_quotes = !in_quotes;
                out.push(c);
            }
            // An open quotation ends at the end of its line.
            '\n' => {
                in_quotes = false;
                out.push(c);
            }
            plain => out.push(plain),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_words(line: &str, expect: Result<&[&str], CurlError>) {
        let expect = expect.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(split_curl_command(line), expect, "{line}");
    }

    #[test]
    fn a_command_line_is_split_as_in_a_shell() {
        for (line, expect) in [
            ("curl http://h/", Ok(&["curl", "http://h/"][..])),
            ("curl 'a b' \"c \\\"d\\\" \\n\" e\\ f", Ok(&["curl", "a b", "c \"d\" \\n", "e f"])),
            ("a \\\n  b \\\r\n c", Ok(&["a", "b", "c"])),
            ("$'it\\'s \\u00e4\\x41\\n'", Ok(&["it's \u{e4}A\n"])),
            ("$'\\xc3\\xa4'", Ok(&["\u{e4}"])),
            ("'' \"\" x", Ok(&["", "", "x"])),
            ("'a'\"b\"c", Ok(&["abc"])),
            ("", Ok(&[])),
            ("'a", Err(CurlError::UnclosedQuotation('\''))),
            ("\"a\\", Err(CurlError::UnclosedQuotation('"'))),
            ("$'a\\", Err(CurlError::UnclosedQuotation('\''))),
        ] {
            assert_words(line, expect);
        }
    }

    #[test]
    fn prompts_and_redirections_are_not_arguments() {
        let one = Ok(&["curl", "http://h/a?x=1&y=2"][..]);
        for line in [
            "curl http://h/a?x=1&y=2 | jq .",
            "curl http://h/a?x=1&y=2|jq .",
            "curl 'http://h/a?x=1&y=2' |& jq .",
            "curl 'http://h/a?x=1&y=2' > /dev/null 2>&1",
            "curl >out.json http://h/a?x=1&y=2 2> err",
            "curl http://h/a?x=1&y=2 &> /dev/null",
            "curl http://h/a?x=1&y=2 # a remark | with signs",
            "curl http://h/a?x=1&y=2; # the end",
            "curl http://h/a?x=1&y=2 &\n",
            "$ curl http://h/a?x=1&y=2",
            "sudo TOKEN=x curl http://h/a?x=1&y=2",
        ] {
            assert_words(line, one.clone());
        }
        assert_words("curl h -d 'a | b > c; d # e'", Ok(&["curl", "h", "-d", "a | b > c; d # e"]));
        assert_words("curl h -d '|' '>' \\;", Ok(&["curl", "h", "-d", "|", ">", ";"]));
        for line in ["curl h && curl i", "curl h; echo x", "curl h || true", "curl h & curl i"] {
            assert_words(line, Err(CurlError::TrailingCommand));
        }
        for (line, what) in [
            ("curl -H \"Authorization: Bearer $TOKEN\" h", "the variable $TOKEN"),
            ("curl h/${ID}/x", "the variable $ID"),
            ("curl -d \"$(cat s3cret)\" h", "a command in $( )"),
            ("curl -d `cat s3cret` h", "a command in backquotes"),
        ] {
            assert_words(line, Err(CurlError::ShellExpansion(what.to_owned())));
        }
        assert_words("curl 'h/$TOKEN' \"h/?$filter=1\" \\$A", Ok(&["curl", "h/$TOKEN", "h/?$filter=1", "$A"]));
    }

    #[test]
    fn windows_command_lines_are_split_as_in_cmd() {
        let body = "{\"a\":\"1 & 2\",\"p\":\"100%\"}";
        let line = "curl ^\"http://h/a?x=1^&y=2^\" ^\r\n  -H ^\"accept: */*^\" ^\r\n  --data-raw \
                    ^\"^{^\\^\"a^\\^\":^\\^\"1 ^& 2^\\^\",^\\^\"p^\\^\":^\\^\"100^%^\\^\"^}^\"";
        assert_words(line, Ok(&["curl", "http://h/a?x=1&y=2", "-H", "accept: */*", "--data-raw", body]));
        let line = "curl \"http://h/?$FILTER=1\" ^\n -H \"x: a^b\" ^\n --data-raw \"{\"\"a\"\":1}\" -o c:\\x\\y";
        assert_words(
            line,
            Ok(&["curl", "http://h/?$FILTER=1", "-H", "x: a^b", "--data-raw", "{\"a\":1}", "-o", "c:\\x\\y"]),
        );
        assert_words("curl ^\"h^\" -d ^\"a^\n\nb^\"", Ok(&["curl", "h", "-d", "a\nb"]));
        assert_words("curl 'h' -d '^\"'", Ok(&["curl", "h", "-d", "^\""]));
    }

    proptest::proptest! {
        #[test]
        fn any_line_parses_without_a_panic(line in "[-a-zA-Z@='\"\\\\$<>|&;^#(`: \n{}äx0-9]{0,80}") {
            let _ = split_curl_command(&line);
            let _ = split_curl_command(&format!("curl ^\"{line}"));
        }
    }
}
