//! The source as a tree in which every value knows its place.
//!
//! YAML's syntax ends here: aliases are expanded within a bound, duplicate keys, tags and second documents
//! are refused. What the values mean is no business of this room. `serde_yaml` gives values without their
//! places, so the events of the parser below it are read instead.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::fault::{Fault, Place};

/// The most values a playbook may have, aliases expanded; a large one has a few hundred.
const MOST_VALUES: usize = 10_000;
/// The most bytes that the texts of a file may have, aliases expanded; the file itself has at most 1 MiB.
const MOST_BYTES: usize = 4 << 20;
/// How deep lists and mappings may be nested; a playbook needs five levels.
const DEEPEST: usize = 32;

#[derive(Debug, Clone)]
pub struct Tree {
    pub place: Place,
    pub value: Value,
}

/// What a value is, as far as the syntax says.
#[derive(Debug, Clone)]
pub enum Value {
    /// Text as it was written; `plain` when without quotes, so that it might stand for a number.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Tree>),
    Map(Vec<Entry>),
}

/// One key of a mapping and its value.
#[derive(Debug, Clone)]
pub struct Entry {
    pub key: String,
    pub key_place: Place,
    pub value: Tree,
}

/// One step from a value to a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Key(&'static str),
    Item(usize),
}

impl Tree {
    /// Reads the one document in `source`; `expected` is what it should be.
    pub fn read(source: &str, expected: &'static str) -> Result<Self, Fault> {
        let options = granit_parser::options! {
            disallow_directives: true,
            flow_nesting_limit: DEEPEST,
            block_nesting_limit: DEEPEST,
        };
        let parser = Parser::new_from_str_with_options(source, options);
        let lines = source.lines().collect();
        Reader { lines, parser, expected, anchors: HashMap::new(), values: 0, bytes: 0 }.document()
    }

    /// The place of the part that `path` leads to, or of the last part on the way that was written down.
    pub fn place_of(&self, path: &[Step]) -> Place {
        let Some((step, rest)) = path.split_first() else { return self.place };
        let part = match (&self.value, step) {
            (Value::Map(entries), Step::Key(key)) => entries.iter().find(|e| e.key == *key).map(|e| &e.value),
            (Value::List(items), Step::Item(index)) => items.get(*index),
            _ => None,
        };
        part.map_or(self.place, |part| part.place_of(rest))
    }

    /// How many values it has, and how many bytes their texts.
    fn size(&self) -> (usize, usize) {
        let sum = |(values, bytes), (more_values, more_bytes)| (values + more_values, bytes + more_bytes);
        match &self.value {
            Value::Scalar { text, .. } => (1, text.len()),
            Value::List(items) => items.iter().map(Self::size).fold((1, 0), sum),
            Value::Map(entries) => {
                entries.iter().map(|entry| sum((1, entry.key.len()), entry.value.size())).fold((1, 0), sum)
            }
        }
    }
}

struct Reader<'s> {
    lines: Vec<&'s str>,
    parser: Parser<'s, granit_parser::StrInput<'s>>,
    expected: &'static str,
    anchors: HashMap<usize, Tree>,
    values: usize,
    bytes: usize,
}

impl<'s> Reader<'s> {
    fn document(mut self) -> Result<Tree, Fault> {
        let tree = loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::StreamEnd, _) => return Err(self.empty()),
                (event, span) => break self.value(event, span)?,
            }
        };
        match &tree.value {
            Value::Scalar { text, plain: true } if text.is_empty() => return Err(self.empty()),
            _ => {}
        }
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(tree),
                (Event::DocumentStart(..), span) => {
                    let place = self.place(span);
                    return Err(Fault::new(place, "a second document begins here", "one document in one file"));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'s>, Span), Fault> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Err(self.empty()),
        }
    }

    fn value(&mut self, event: Event<'s>, span: Span) -> Result<Tree, Fault> {
        let place = self.place(span);
        if event.tag().is_some() {
            let tag = span.tag_span().map_or(place, |tag| self.place(tag));
            return Err(Fault::new(tag, "a YAML tag stands here", "a value without a tag: each key knows its type"));
        }
        let anchor = event.anchor_id();
        let bytes = if let Event::Scalar(text, ..) = &event { text.len() } else { 0 };
        let value = match event {
            Event::Scalar(text, style, ..) => {
                Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain }
            }
            Event::SequenceStart(..) => Value::List(self.items()?),
            Event::MappingStart(..) => Value::Map(self.entries()?),
            Event::Alias(id) => return self.alias(id, place),
            _ => return Err(Fault::new(place, "no value stands here", "a value")),
        };
        self.spend((1, bytes), place)?;
        let tree = Tree { place, value };
        if let Some(id) = anchor {
            // It is kept once more, for its aliases.
            self.spend(tree.size(), place)?;
            self.anchors.insert(id, tree.clone());
        }
        Ok(tree)
    }

    fn items(&mut self) -> Result<Vec<Tree>, Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, span) => items.push(self.value(event, span)?),
            }
        }
    }

    fn entries(&mut self) -> Result<Vec<Entry>, Fault> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(entries);
            }
            let Tree { place: key_place, value } = self.value(event, span)?;
            let Value::Scalar { text: key, .. } = value else {
                return Err(Fault::new(key_place, "a list or mapping stands here as a key", "a key, such as `name`"));
            };
            if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                let problem = format!("duplicate key `{key}`: it is on line {} already", first.key_place.line);
                return Err(Fault::new(key_place, problem, "each key once"));
            }
            let (event, span) = self.next()?;
            let value = self.value(event, span)?;
            entries.push(Entry { key, key_place, value });
        }
    }

    fn alias(&mut self, id: usize, place: Place) -> Result<Tree, Fault> {
        let Some(tree) = self.anchors.get(&id) else {
            return Err(Fault::new(
                place,
                "this alias stands for the very value it is part of",
                "an alias to an earlier value",
            ));
        };
        let size = tree.size();
        let tree = tree.clone();
        self.spend(size, place)?;
        Ok(tree)
    }

    /// Counts values and bytes, so that aliases, of long texts or of aliases, cannot fill the memory.
    fn spend(&mut self, (values, bytes): (usize, usize), place: Place) -> Result<(), Fault> {
        (self.values, self.bytes) = (self.values + values, self.bytes + bytes);
        let (problem, expected) = match () {
            () if self.values > MOST_VALUES => (
                format!("with this, the file has more than {MOST_VALUES} values"),
                "fewer values, and fewer aliases of aliases",
            ),
            () if self.bytes > MOST_BYTES => (
                format!("with this, the texts of the file have more than {} MiB, aliases counted", MOST_BYTES >> 20),
                "shorter texts, and fewer aliases of them",
            ),
            () => return Ok(()),
        };
        Err(Fault::new(place, problem, expected))
    }

    fn empty(&self) -> Fault {
        Fault::of_file("the file is empty", self.expected)
    }

    fn syntax(&self, error: &ScanError) -> Fault {
        let mark = error.marker();
        let place = Place { line: mark.line().max(1), column: mark.col() + 1, width: 1 };
        Fault::new(place, format!("not YAML: {}", error.info()), "valid YAML; see the line above too")
    }

    /// The part of a span that is on its first line; of a block, which has no brackets, the first key or item.
    fn place(&self, span: Span) -> Place {
        let start = span.start;
        let same_line = span.end.line() == start.line();
        let width = if same_line {
            span.end.col().saturating_sub(start.col())
        } else {
            let line = self.lines.get(start.line().saturating_sub(1)).copied().unwrap_or_default();
            line.trim_end().chars().count().saturating_sub(start.col())
        };
        Place { line: start.line().max(1), column: start.col() + 1, width: width.max(1) }
    }
}
