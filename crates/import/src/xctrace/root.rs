//! Recognises documents of xctrace by their root element, and has the errors of other documents.

use super::document::name;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::io::BufRead;

/// A reason why a file is not a document of xctrace or cannot be read as one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file has no XML element.
    #[error("it has no XML element")]
    NoElement,
    /// The file begins with text and not with an element.
    #[error("it starts with text, not with XML")]
    Text,
    /// The file is XML with another root element.
    #[error("its root element is <{0}>")]
    RootElement(String),
    /// The file is not XML.
    #[error("it is not XML ({0})")]
    NotXml(quick_xml::Error),
    /// The file is an export of tables where a table of contents is wanted.
    #[error("it holds tables, not a table of contents")]
    Tables,
    /// The table of contents is damaged.
    #[error("its table of contents is damaged: {0}")]
    DamagedToc(quick_xml::Error),
    /// The table of contents is torn.
    #[error("its table of contents ends too early")]
    TornToc,
}

/// The kind of a document of xctrace: a table of contents, or tables with rows.
pub(crate) enum Root {
    Toc,
    Tables,
}

/// Reads up to the start of the root element and returns the kind of the document.
pub(crate) fn root<R: BufRead>(reader: &mut Reader<R>) -> Result<Root, DocumentError> {
    let mut buffer = Vec::new();
    // An empty `<trace-query-result/>` is read as a start and an end.
    reader.config_mut().expand_empty_elements = true;
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) => {
                return match name(&start) {
                    "trace-toc" => Ok(Root::Toc),
                    "trace-query-result" => Ok(Root::Tables),
                    other => Err(DocumentError::RootElement(other.to_owned())),
                };
            }
            Ok(Event::Eof) => return Err(DocumentError::NoElement),
            Ok(Event::Text(text)) if !text.xml10_content().trim().is_empty() => {
                return Err(DocumentError::Text);
            }
            Ok(_) => {}
            Err(error) => return Err(DocumentError::NotXml(error)),
        }
    }
}
