//! Reads rustdoc's description of a crate in JSON.

use serde_json::Value;

/// rustdoc's description of a crate.
pub struct Crate(pub Value);

impl Crate {
    /// Returns an item by its id; `None` for an item of another crate.
    pub fn item(&self, id: &Value) -> Option<&Value> {
        self.0["index"].get(key(id)?)
    }

    /// Returns the path of an item of any crate, where its definition is.
    pub fn definition(&self, id: &Value) -> Option<String> {
        let path = self.0["paths"].get(key(id)?)?["path"].as_array()?;
        let parts: Option<Vec<_>> = path.iter().map(Value::as_str).collect();
        Some(parts?.join("::"))
    }

    /// Returns the id of the item that is defined at a path.
    pub fn defined_at(&self, path: &str) -> Option<Value> {
        let paths = self.0["paths"].as_object()?;
        let ids = paths.keys().map(|id| Value::from(id.as_str()));
        ids.into_iter()
            .find(|id| self.definition(id).as_deref() == Some(path))
    }
}

/// Returns an id as the key of a table.
fn key(id: &Value) -> Option<String> {
    match id {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Returns the elements of a list; nothing for another value.
pub fn list_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the kind of an item or a type and its content, which rustdoc writes as `{kind: content}`.
pub fn kind_of(value: &Value) -> Option<(&str, &Value)> {
    match value {
        Value::String(kind) => Some((kind, &Value::Null)),
        Value::Object(fields) => fields
            .iter()
            .next()
            .map(|(kind, content)| (&**kind, content)),
        _ => None,
    }
}
