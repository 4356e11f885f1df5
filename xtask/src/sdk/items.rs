//! Lists the public items of a crate, each as a line, from rustdoc's description of the crate in JSON.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result};
use serde_json::Value;

use super::described::{Crate, kind_of, list_of};
use super::render::Render;

/// The compiler's own traits, which programs cannot name.
const UNNAMED_TRAITS: [&str; 3] = ["Freeze", "StructuralPartialEq", "UnsafeUnpin"];

/// The public items of a crate.
pub struct Listed {
    /// The items, a line each.
    pub items: BTreeSet<String>,
    /// The types of other crates of the workspace that items have and programs cannot name, with such an item.
    pub hidden_types: BTreeSet<String>,
}

/// Lists the public items of a crate. Items that it re-exports from `other` are listed under their names in the crate.
pub fn list(described: &Crate, other: &Crate) -> Result<Listed> {
    let root = &described.0["root"];
    let name = described.item(root).and_then(|root| root["name"].as_str());
    let name = name.context("rustdoc's description has no root")?;
    let mut walk = Walk {
        other,
        names: HashMap::new(),
        found: Vec::new(),
    };
    walk.module(described, root, name);
    let Walk { names, found, .. } = walk;
    let mut listed = Listed {
        items: BTreeSet::new(),
        hidden_types: BTreeSet::new(),
    };
    for PublicItem {
        described,
        id,
        path,
    } in found
    {
        let Some(item) = described.item(&id) else {
            listed.items.insert(format!("use {path}"));
            continue;
        };
        let render = Render::new(described, &names);
        let mut lines = Lines {
            described,
            render: &render,
            listed: &mut listed,
        };
        lines.item(item, &path);
        for hidden in render.hidden_types() {
            listed.hidden_types.insert(format!("{hidden} in {path}"));
        }
    }
    Ok(listed)
}

/// A public item with its public path.
struct PublicItem<'a> {
    described: &'a Crate,
    id: Value,
    path: String,
}

/// Walks the public modules of a crate.
struct Walk<'a> {
    other: &'a Crate,
    /// The public paths of types and traits, by the path of their definition.
    names: HashMap<String, String>,
    found: Vec<PublicItem<'a>>,
}

impl<'a> Walk<'a> {
    fn module(&mut self, described: &'a Crate, id: &Value, path: &str) {
        let Some(module) = described.item(id) else {
            return;
        };
        for id in list_of(&module["inner"]["module"]["items"]) {
            let Some(item) = described.item(id) else {
                continue;
            };
            let Some((kind, content)) = kind_of(&item["inner"]) else {
                continue;
            };
            match kind {
                "use" => self.reexport(described, content, path),
                "module" => {
                    let path = format!("{path}::{}", name_of(item));
                    self.module(described, id, &path);
                }
                _ => {
                    let path = format!("{path}::{}", name_of(item));
                    self.add(described, id.clone(), path);
                }
            }
        }
    }

    fn reexport(&mut self, described: &'a Crate, reexport: &Value, path: &str) {
        let (name, id) = (
            reexport["name"].as_str().unwrap_or_default(),
            &reexport["id"],
        );
        let item = described.item(id);
        let is_module = item.is_some_and(|item| item["inner"].get("module").is_some());
        if reexport["is_glob"] == true {
            return self.module(described, id, path);
        }
        let path = format!("{path}::{name}");
        if is_module {
            return self.module(described, id, &path);
        }
        let definition = described.definition(id);
        let other = definition.and_then(|definition| self.other.defined_at(&definition));
        match (item, other) {
            (None, Some(id)) => self.add(self.other, id, path),
            _ => self.add(described, id.clone(), path),
        }
    }

    fn add(&mut self, described: &'a Crate, id: Value, path: String) {
        if let Some(definition) = described.definition(&id) {
            // The shortest of several public paths.
            let name = self.names.entry(definition).or_insert_with(|| path.clone());
            if path.len() < name.len() {
                name.clone_from(&path);
            }
        }
        self.found.push(PublicItem {
            described,
            id,
            path,
        });
    }
}

fn name_of(item: &Value) -> &str {
    item["name"].as_str().unwrap_or_default()
}

/// Writes the lines of items.
struct Lines<'a> {
    described: &'a Crate,
    render: &'a Render<'a>,
    listed: &'a mut Listed,
}

impl Lines<'_> {
    fn add(&mut self, line: String) {
        self.listed.items.insert(line);
    }

    /// Adds the lines of an item and of all that belongs to it.
    fn item(&mut self, item: &Value, path: &str) {
        let Some((kind, content)) = kind_of(&item["inner"]) else {
            return;
        };
        let render = self.render;
        let generics = render.generics(&content["generics"]);
        let limit = match item["attrs"].to_string().contains("non_exhaustive") {
            true => " (non_exhaustive)",
            false => "",
        };
        match kind {
            "function" => self.add(render.function(content, path)),
            "constant" | "assoc_const" | "static" => {
                self.add(format!(
                    "const {path}: {}",
                    render.type_of(&content["type"])
                ));
            }
            "type_alias" | "assoc_type" => {
                let bounds = render.bounds(&content["bounds"]);
                self.add(format!(
                    "type {path}{generics}{bounds} = {}",
                    render.type_of(&content["type"])
                ));
            }
            "macro" => self.add(format!("macro {path}!")),
            "struct_field" => self.add(format!("field {path}: {}", render.type_of(content))),
            "variant" => {
                self.add(format!("variant {path}{limit}"));
                self.fields(&content["kind"], path);
            }
            "struct" | "enum" | "union" => {
                let private = match content.to_string().contains("_stripped_fields\":true")
                    || list_of(&content["kind"]["tuple"]).any(Value::is_null)
                {
                    true => " (private fields)",
                    false => "",
                };
                self.add(format!("{kind} {path}{generics}{limit}{private}"));
                self.fields(&content["kind"], path);
                self.members(&content["variants"], path);
                for id in list_of(&content["impls"]) {
                    self.implementation(id, path);
                }
            }
            "trait" => {
                let bounds = render.bounds(&content["bounds"]);
                self.add(format!("trait {path}{generics}{bounds}"));
                for id in list_of(&content["items"]) {
                    if let Some(item) = self.described.item(id) {
                        let path = format!("{path}::{}", name_of(item));
                        self.item(item, &path);
                        // A new item without a default breaks implementations.
                        if item["inner"]["function"]["has_body"] == true {
                            self.add(format!("default of {path}"));
                        }
                    }
                }
            }
            other => self.add(format!("{other} {path}")),
        }
    }

    /// Adds the public fields of a struct or a variant.
    fn fields(&mut self, kind: &Value, path: &str) {
        self.members(&kind["plain"]["fields"], path);
        self.members(&kind["struct"]["fields"], path);
        self.members(&kind["tuple"], path);
    }

    /// Adds items that are named inside of another.
    fn members(&mut self, ids: &Value, path: &str) {
        for id in list_of(ids) {
            if let Some(item) = self.described.item(id) {
                self.item(item, &format!("{path}::{}", name_of(item)));
            }
        }
    }

    /// Adds an implementation: the functions of the type's own, else the trait. Blanket ones are no promise of the type's.
    fn implementation(&mut self, id: &Value, path: &str) {
        let Some(item) = self.described.item(id) else {
            return;
        };
        let content = &item["inner"]["impl"];
        if !content["blanket_impl"].is_null() {
            return;
        }
        if content["trait"].is_null() {
            return self.members(&content["items"], path);
        }
        let generics = self.render.generics(&content["generics"]);
        let not = if content["is_negative"] == true {
            "!"
        } else {
            ""
        };
        let name = self.render.path(&content["trait"]);
        if UNNAMED_TRAITS.contains(&&*name) {
            return;
        }
        let of = self.render.type_of(&content["for"]);
        self.add(format!("impl{generics} {not}{name} for {of}"));
    }
}
