//! Reads a document of `xctrace export --xpath` as a stream of rows.
//!
//! `<trace-query-result>` holds a `<node>` for each table. A node holds a `<schema>` and rows, and a row holds a cell
//! for each column in the order of the columns. The tag of a cell is the engineering type of its column. A value is
//! written once, with an `id` that is unique in the document, and later as a `ref` to it, at any depth; `<sentinel/>`
//! is a missing value. A node without a schema has the schema of the node before.

use super::cell::{Element, Kind, Value};
use super::row::{Column, Row, Schema};
use super::summary::{Damage, Ending, Summary};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use rustc_hash::FxHashMap;
use std::io::BufRead;
use std::rc::Rc;

/// The maximum depth of elements in a row. Deeper elements are damage.
const DEEPEST: usize = 64;

// The reasons why a row is damaged.
const WRONG_CELLS: &str = "the row has not one cell for each column";
const WRONG_TYPE: &str = "a cell is not of its column's type";
const DANGLING: &str = "a cell refers to a value that the document does not have";
const NO_SCHEMA: &str = "the table has no schema";
const TOO_DEEP: &str = "its elements nest too deep";

/// A cell of the row that is being read.
#[derive(Debug, Clone)]
enum Cell {
    Known {
        tag: Rc<str>,
        value: Value,
    },
    /// A reference to a value that is not read yet.
    Later {
        tag: Rc<str>,
        id: u64,
    },
}

/// A row that waits for values that come later in the document.
struct WaitingRow {
    schema: Rc<Schema>,
    cells: Vec<Cell>,
}

/// Reads a document whose root element has been read, passes each row to `take` and returns the summary. Rows that
/// refer to later values come at the end; damaged rows are only counted.
pub(crate) fn read<R: BufRead>(
    reader: &mut Reader<R>,
    take: &mut dyn FnMut(&Schema, Row),
) -> Summary {
    let mut document = Document {
        take,
        values: FxHashMap::default(),
        tags: FxHashMap::default(),
        schema: None,
        fresh: None,
        waiting: Vec::new(),
        summary: Summary::default(),
        cells: Vec::new(),
        values_of_row: Vec::new(),
    };
    document.summary.ending = document.read_all(reader);
    document.read_waiting();
    document.summary
}

/// The state of reading a document of tables.
struct Document<'a> {
    /// Called with each whole row and its schema.
    take: &'a mut dyn FnMut(&Schema, Row),
    /// The values of the document so far, by id.
    values: FxHashMap<u64, Value>,
    /// The tags that were seen, with the encodings of their elements.
    tags: FxHashMap<Box<str>, (Rc<str>, Kind)>,
    /// The schema of the current node; `None` before the first.
    schema: Option<Rc<Schema>>,
    /// The schema that is being read.
    fresh: Option<Schema>,
    /// Rows with references to values that were not read yet.
    waiting: Vec<WaitingRow>,
    summary: Summary,
    /// The cells of the current row, and their values when it is passed on; both keep their memory.
    cells: Vec<Cell>,
    values_of_row: Vec<Value>,
}

impl Document<'_> {
    /// Reads schemas and rows up to the end of the document, and returns how it ended.
    fn read_all<R: BufRead>(&mut self, reader: &mut Reader<R>) -> Ending {
        reader.config_mut().expand_empty_elements = true;
        let mut buffer = Vec::new();
        // The text of the schema's element that is being read.
        let mut text = String::new();
        loop {
            buffer.clear();
            let event = match reader.read_event_into(&mut buffer) {
                Ok(event) => event,
                Err(error) => return broken(&error, Ending::AfterRow),
            };
            match event {
                Event::Start(start) => match name(&start) {
                    "row" => match self.read_row(reader) {
                        Ok(fault) => self.finish_row(fault),
                        Err(ending) => {
                            self.cells.clear();
                            return ending;
                        }
                    },
                    "node" => self.summary.nodes += 1,
                    "schema" => {
                        self.fresh = Some(Schema {
                            name: attribute(&start, "name").unwrap_or_default(),
                            columns: Vec::new(),
                        });
                    }
                    "col" => {
                        if let Some(schema) = &mut self.fresh {
                            schema.columns.push(Column::default());
                        }
                    }
                    _ => text.clear(),
                },
                Event::End(end) => match end.name().as_ref() {
                    "trace-query-result" => return Ending::Complete,
                    "schema" => {
                        if let Some(schema) = self.fresh.take() {
                            self.schema = Some(Rc::new(schema));
                        }
                    }
                    "mnemonic" => self.set_column(|column| &mut column.mnemonic, &text),
                    "engineering-type" => {
                        self.set_column(|column| &mut column.engineering_type, &text);
                    }
                    _ => {}
                },
                Event::Text(part) => text.push_str(&part.xml10_content()),
                Event::Eof => return Ending::AfterRow,
                _ => {}
            }
        }
    }

    /// Sets a field of the last column of the schema that is being read.
    fn set_column(&mut self, field: impl Fn(&mut Column) -> &mut String, text: &str) {
        if let Some(column) = self.fresh.as_mut().and_then(|s| s.columns.last_mut()) {
            *field(column) = text.trim().to_owned();
        }
    }

    /// Reads the cells of a row into `cells` up to its end. Returns the damage of the row, or how the document
    /// ended inside the row.
    fn read_row<R: BufRead>(
        &mut self,
        reader: &mut Reader<R>,
    ) -> Result<Option<&'static str>, Ending> {
        self.cells.clear();
        let mut stack: Vec<(Rc<str>, Kind, Element)> = Vec::new();
        let mut spare: Vec<Element> = Vec::new();
        // The id to which the innermost element refers.
        let mut reference: Option<u64> = None;
        let mut fault = None;
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let event = match reader.read_event_into(&mut buffer) {
                Ok(event) => event,
                Err(error) => return Err(broken(&error, Ending::InRow)),
            };
            match event {
                Event::Start(start) => {
                    if stack.len() >= DEEPEST {
                        fault = Some(TOO_DEEP);
                    }
                    let (tag, kind) = self.tag(name(&start));
                    let mut element = spare.pop().unwrap_or_default();
                    element.reset();
                    reference = None;
                    if kind != Kind::Unused {
                        for attribute in start.attributes().with_checks(false).flatten() {
                            match attribute.key.as_ref() {
                                "id" => element.id = attribute.value.parse().ok(),
                                "ref" => reference = attribute.value.parse().ok(),
                                "fmt" if kind != Kind::Number => {
                                    if let Ok(fmt) =
                                        attribute.normalized_value(XmlVersion::Implicit1_0)
                                    {
                                        element.set_fmt(&fmt);
                                    }
                                }
                                _ => {}
                            }
                        }
                    }
                    stack.push((tag, kind, element));
                }
                Event::End(_) => {
                    let Some((tag, kind, element)) = stack.pop() else {
                        return Ok(fault);
                    };
                    let cell = match reference.take() {
                        Some(id) => match self.values.get(&id) {
                            Some(value) => Cell::Known {
                                tag: tag.clone(),
                                value: value.clone(),
                            },
                            None => Cell::Later {
                                tag: tag.clone(),
                                id,
                            },
                        },
                        None => Cell::Known {
                            tag: tag.clone(),
                            value: element.value(kind),
                        },
                    };
                    if let (Cell::Known { value, .. }, Some(id)) = (&cell, element.id)
                        && kind != Kind::Unused
                    {
                        self.values.insert(id, value.clone());
                    }
                    spare.push(element);
                    match stack.last_mut() {
                        Some((_, _, around)) => {
                            if let Cell::Known { value, .. } = &cell {
                                around.add_inner(&tag, value);
                            }
                        }
                        None => self.cells.push(cell),
                    }
                }
                Event::Text(part) => {
                    if let Some((_, _, element)) = stack.last_mut() {
                        element.add_text(&part.xml10_content());
                    }
                }
                Event::CData(part) => {
                    if let Some((_, _, element)) = stack.last_mut() {
                        element.add_text(&part.xml10_content());
                    }
                }
                Event::GeneralRef(entity) => {
                    if let Some((_, _, element)) = stack.last_mut() {
                        match entity.resolve_char_ref() {
                            Ok(Some(character)) => {
                                element.add_text(character.encode_utf8(&mut [0; 4]))
                            }
                            _ => element.add_text(match entity.xml10_content().as_ref() {
                                "amp" => "&",
                                "lt" => "<",
                                "gt" => ">",
                                "quot" => "\"",
                                "apos" => "'",
                                _ => "\u{fffd}",
                            }),
                        }
                    }
                }
                Event::Eof => return Err(Ending::InRow),
                _ => {}
            }
        }
    }

    /// Returns a tag and the encoding of its elements.
    fn tag(&mut self, name: &str) -> (Rc<str>, Kind) {
        if let Some((tag, kind)) = self.tags.get(name) {
            return (tag.clone(), *kind);
        }
        let tag: Rc<str> = name.into();
        let kind = Kind::from_tag(name);
        self.tags.insert(name.into(), (tag.clone(), kind));
        (tag, kind)
    }

    /// Passes the row in `cells` on, lets it wait for later values, or counts it as damaged: `fault` is the damage
    /// that its reading found.
    fn finish_row(&mut self, fault: Option<&'static str>) {
        let Some(schema) = self.schema.clone() else {
            self.damaged("?", NO_SCHEMA);
            return;
        };
        let cells = std::mem::take(&mut self.cells);
        let fault = fault.or_else(|| fault_of(&schema, &cells));
        if let Some(fault) = fault {
            self.damaged(&schema.name, fault);
        } else if cells.iter().any(|cell| matches!(cell, Cell::Later { .. })) {
            self.waiting.push(WaitingRow { schema, cells });
            return;
        } else {
            self.hand_over(&schema, &cells);
        }
        self.cells = cells;
    }

    /// Passes on the rows with forward references, whose values are all known at the end of the document.
    fn read_waiting(&mut self) {
        for WaitingRow { schema, mut cells } in std::mem::take(&mut self.waiting) {
            let mut dangling = false;
            for cell in &mut cells {
                let Cell::Later { tag, id } = cell else {
                    continue;
                };
                let used = Kind::from_tag(tag) != Kind::Unused;
                let value = self.values.get(id).cloned();
                dangling |= used && value.is_none();
                *cell = Cell::Known {
                    tag: tag.clone(),
                    value: value.unwrap_or(Value::Nothing),
                };
            }
            if dangling {
                self.damaged(&schema.name, DANGLING);
            } else {
                self.hand_over(&schema, &cells);
            }
        }
    }

    /// Passes a row to `take`, and counts it.
    fn hand_over(&mut self, schema: &Schema, cells: &[Cell]) {
        let mut values = std::mem::take(&mut self.values_of_row);
        values.clear();
        values.extend(cells.iter().map(|cell| match cell {
            Cell::Known { value, .. } => value.clone(),
            Cell::Later { .. } => Value::Nothing,
        }));
        let row = Row {
            schema,
            cells: &values,
        };
        (self.take)(schema, row);
        *self.summary.rows.entry(schema.name.clone()).or_default() += 1;
        self.values_of_row = values;
    }

    /// Counts a damaged row.
    fn damaged(&mut self, table: &str, reason: &'static str) {
        let damage = Damage {
            table: table.to_owned(),
            reason,
        };
        *self.summary.damaged.entry(damage).or_default() += 1;
    }
}

/// Returns the damage of a row whose cells do not match the schema: a value in the wrong column would look right.
/// `None` if all match, have no type of interest, or are missing.
fn fault_of(schema: &Schema, cells: &[Cell]) -> Option<&'static str> {
    if cells.len() != schema.columns.len() {
        return Some(WRONG_CELLS);
    }
    let wrong = cells.iter().zip(&schema.columns).any(|(cell, column)| {
        let (Cell::Known { tag, .. } | Cell::Later { tag, .. }) = cell;
        let wanted = column.engineering_type.as_str();
        &**tag != wanted && &**tag != "sentinel" && Kind::from_tag(wanted) != Kind::Unused
    });
    wrong.then_some(WRONG_TYPE)
}

/// Returns the ending for an error of the XML: a document that ends too early is torn, and any other error is damage.
fn broken(error: &quick_xml::Error, torn: Ending) -> Ending {
    match error {
        quick_xml::Error::Syntax(_) => torn,
        quick_xml::Error::IllFormed(quick_xml::errors::IllFormedError::MissingEndTag(_)) => torn,
        error => Ending::Malformed(error.to_string()),
    }
}

/// Returns the name of an element.
pub(crate) fn name<'a>(start: &'a BytesStart) -> &'a str {
    start.name().into_inner()
}

/// Returns the value of an attribute with its entities resolved; `None` if the element lacks it.
pub(crate) fn attribute(start: &BytesStart, key: &str) -> Option<String> {
    let attribute = start.try_get_attribute(key).ok()??;
    Some(
        attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .ok()?
            .into_owned(),
    )
}
