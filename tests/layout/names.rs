//! What a source file names, read from its tokens.

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};
use std::ops::RangeInclusive;

/// What a source file names outside of its tests.
#[derive(Debug, Default)]
pub struct Names {
    /// The file's module, without the crate: `["packet", "checksum"]`.
    pub module: Vec<String>,
    /// Paths of this crate, from its root: `packet::checksum::Sum`.
    pub inner: Vec<String>,
    /// Paths of other crates: `std::io::Read`.
    pub outer: Vec<String>,
    /// Whether `unsafe` stands anywhere.
    pub has_unsafe: bool,
    /// Macros and attributes of unfinished work.
    pub unfinished: Vec<&'static str>,
    /// How many lines it has.
    pub lines: usize,
}

/// Files that hold nothing but tests: `tests.rs`, `…_tests.rs`, and those in a folder `tests`.
pub fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

impl Names {
    /// Reads a file.
    pub fn of(path: &str, text: &str) -> Result<Self, LexError> {
        let tokens: TokenStream = text.parse()?;
        let module = module(path);
        let mut names = Self { module: module.clone(), lines: text.lines().count(), ..Self::default() };
        names.walk(tokens, &module);
        Ok(names)
    }

    fn walk(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if is_test_attribute(&tokens, at) {
                let end = end_of_item(&tokens, at);
                self.lines -= lines_of(&tokens[at..end]).map_or(0, |lines| lines.count());
                at = end;
                continue;
            }
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                        (tokens.get(at + 1), tokens.get(at + 2))
                    {
                        let inner: Vec<_> = module.iter().cloned().chain([name.to_string()]).collect();
                        self.walk(body.stream(), &inner);
                        at += 2;
                    }
                }
                TokenTree::Ident(word) if word == "use" => {
                    self.tree(&tokens, at + 1, &[], module);
                    // Trees hold nothing but paths.
                    while tokens.get(at).is_some_and(|token| !is_punct(Some(token), ';')) {
                        at += 1;
                    }
                }
                TokenTree::Ident(word) => {
                    self.word(&word.to_string(), &tokens, at);
                    if is_colons(&tokens, at + 1) {
                        at = self.tree(&tokens, at, &[], module);
                        continue;
                    }
                }
                TokenTree::Group(group) => self.walk(group.stream(), module),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    fn word(&mut self, word: &str, tokens: &[TokenTree], at: usize) {
        self.has_unsafe |= word == "unsafe";
        let next = tokens.get(at + 1);
        for (name, sign) in [("dbg", "dbg!"), ("todo", "todo!"), ("unimplemented", "unimplemented!")] {
            if word == name && is_punct(next, '!') {
                self.unfinished.push(sign);
            }
        }
        if let (true, Some(TokenTree::Group(group))) = (matches!(word, "allow" | "expect"), next)
            && group.stream().into_iter().any(|token| matches!(token, TokenTree::Ident(lint) if lint == "dead_code"))
        {
            self.unfinished.push("allow(dead_code)");
        }
    }

    /// Reads a path, or a tree of a `use`, that begins at a token; gives where it ends.
    fn tree(&mut self, tokens: &[TokenTree], mut at: usize, before: &[String], module: &[String]) -> usize {
        let mut path = before.to_vec();
        if is_colons(tokens, at) {
            at += 2;
        }
        loop {
            match tokens.get(at) {
                Some(TokenTree::Ident(word)) => path.push(word.to_string()),
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let items: Vec<_> = group.stream().into_iter().collect();
                    for item in items.split(|token| is_punct(Some(token), ',')).filter(|item| !item.is_empty()) {
                        self.tree(item, 0, &path, module);
                    }
                    return at + 1;
                }
                Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                    path.push("*".to_owned());
                    self.named(&path, module);
                    return at + 1;
                }
                // Generic arguments: they are read by whoever called.
                _ => {
                    self.named(&path, module);
                    return at.max(1);
                }
            }
            at += 1;
            if !is_colons(tokens, at) {
                self.named(&path, module);
                return at;
            }
            at += 2;
        }
    }

    fn named(&mut self, path: &[String], module: &[String]) {
        let path = match path {
            [rest @ .., last] if last == "self" && !rest.is_empty() => rest,
            path => path,
        };
        let Some(first) = path.first() else { return };
        let supers = path.iter().take_while(|word| *word == "super").count();
        let inner: Vec<String> = match first.as_str() {
            "crate" | "thruway" => path[1..].to_vec(),
            "self" => module.iter().chain(&path[1..]).cloned().collect(),
            "super" => {
                let kept = module.len().saturating_sub(supers);
                module[..kept].iter().chain(&path[supers..]).cloned().collect()
            }
            _ => return self.outer.push(path.join("::")),
        };
        self.inner.push(inner.join("::"));
    }
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are `a::b`; `src/lib.rs` is the root.
fn module(path: &str) -> Vec<String> {
    let path = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    let mut module: Vec<String> = path.split('/').map(str::to_owned).collect();
    module.pop_if(|last| last == "mod" || (path == "lib" && last == "lib"));
    module
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

/// `#[cfg(test)]` and `#[cfg(all(test, …))]`; `any` and `not` are compiled without tests too.
fn is_test_attribute(tokens: &[TokenTree], at: usize) -> bool {
    let (true, Some(TokenTree::Group(attribute))) = (is_punct(tokens.get(at), '#'), tokens.get(at + 1)) else {
        return false;
    };
    let text: String = attribute.stream().into_iter().map(|token| token.to_string()).collect();
    let text: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// Where the item ends whose first attribute is at `at`: behind its braces or semicolon.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while is_punct(tokens.get(at), '#') {
        at += 2;
    }
    let is_use = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "use");
    let braces_end = !tokens.iter().skip(at).take(3).any(is_use);
    while let Some(token) = tokens.get(at) {
        at += 1;
        let braces = matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        if (braces && braces_end) || is_punct(Some(token), ';') {
            break;
        }
    }
    at
}

fn lines_of(tokens: &[TokenTree]) -> Option<RangeInclusive<usize>> {
    Some(tokens.first()?.span().start().line..=tokens.last()?.span().end().line)
}
