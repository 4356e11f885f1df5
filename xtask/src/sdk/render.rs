//! Writes signatures and types as text, from rustdoc's description in JSON.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::described::{Crate, kind_of, list_of};

/// Writes the types of a crate's items.
pub struct Render<'a> {
    described: &'a Crate,
    /// The public paths of the workspace's types, by the path of their definition.
    names: &'a HashMap<String, String>,
    /// The types of the workspace that have no public path.
    hidden: RefCell<BTreeSet<String>>,
}

impl<'a> Render<'a> {
    pub fn new(described: &'a Crate, names: &'a HashMap<String, String>) -> Render<'a> {
        Render {
            described,
            names,
            hidden: RefCell::default(),
        }
    }

    /// Returns the types that were written and have no public path.
    pub fn hidden_types(self) -> BTreeSet<String> {
        self.hidden.into_inner()
    }

    /// Returns a function's signature under its path.
    pub fn function(&self, function: &Value, path: &str) -> String {
        let flags: String = ["const", "async", "unsafe"]
            .into_iter()
            .filter(|flag| function["header"][format!("is_{flag}")] == true)
            .map(|flag| format!("{flag} "))
            .collect();
        let generics = self.generics(&function["generics"]);
        let limits = self.limits(&function["generics"]);
        let signature = self.signature(&function["sig"]);
        format!("{flags}fn {path}{generics}{signature}{limits}")
    }

    fn signature(&self, signature: &Value) -> String {
        // The names of arguments are no promise.
        let inputs = list_of(&signature["inputs"]).map(|input| self.type_of(&input[1]));
        let inputs: Vec<_> = inputs.collect();
        let output = match &signature["output"] {
            Value::Null => String::new(),
            output => format!(" -> {}", self.type_of(output)),
        };
        format!("({}){output}", inputs.join(", "))
    }

    /// Returns generic parameters in angle brackets. Those that stand for `impl Trait` are in the arguments already.
    pub fn generics(&self, generics: &Value) -> String {
        let params = list_of(&generics["params"])
            .filter(|param| param["kind"]["type"]["is_synthetic"] != true)
            .map(|param| self.parameter(param));
        in_brackets(params.collect())
    }

    fn parameter(&self, param: &Value) -> String {
        let name = param["name"].as_str().unwrap_or_default();
        match kind_of(&param["kind"]) {
            Some(("type", kind)) => format!("{name}{}", self.bounds(&kind["bounds"])),
            Some(("const", kind)) => format!("const {name}: {}", self.type_of(&kind["type"])),
            _ => name.to_owned(),
        }
    }

    /// Returns the clause `where`.
    fn limits(&self, generics: &Value) -> String {
        let limits = list_of(&generics["where_predicates"]).filter_map(|limit| {
            let bound = limit.get("bound_predicate")?;
            Some(format!(
                "{}{}",
                self.type_of(&bound["type"]),
                self.bounds(&bound["bounds"])
            ))
        });
        let limits: Vec<_> = limits.collect();
        match limits.is_empty() {
            true => String::new(),
            false => format!(" where {}", limits.join(", ")),
        }
    }

    /// Returns bounds with a colon before them, if there are any.
    pub fn bounds(&self, bounds: &Value) -> String {
        match self.sum(bounds) {
            sum if sum.is_empty() => sum,
            sum => format!(": {sum}"),
        }
    }

    fn sum(&self, bounds: &Value) -> String {
        let bounds = list_of(bounds).map(|bound| match kind_of(bound) {
            Some(("trait_bound", bound)) => {
                let maybe = if bound["modifier"] == "maybe" {
                    "?"
                } else {
                    ""
                };
                format!("{maybe}{}", self.path(&bound["trait"]))
            }
            Some(("outlives", lifetime)) => lifetime.as_str().unwrap_or_default().to_owned(),
            Some((kind, _)) => kind.to_owned(),
            None => String::new(),
        });
        Vec::from_iter(bounds).join(" + ")
    }

    /// Returns a type or a trait with its arguments: by its public path if it is of the workspace, else by its name.
    pub fn path(&self, path: &Value) -> String {
        let written = path["path"].as_str().unwrap_or_default();
        let short = written.rsplit("::").next().unwrap_or_default();
        let definition = self.described.definition(&path["id"]).unwrap_or_default();
        let name = match self.names.get(&definition) {
            Some(name) => name,
            // The compiler itself refuses private types of the SDK, but for traits that are sealed.
            None if definition.starts_with("gapscope_")
                && !definition.starts_with("gapscope_sdk::") =>
            {
                self.hidden.borrow_mut().insert(definition);
                short
            }
            None => short,
        };
        format!("{name}{}", self.arguments(&path["args"]))
    }

    fn arguments(&self, args: &Value) -> String {
        match kind_of(args) {
            Some(("angle_bracketed", args)) => {
                let constraints = list_of(&args["constraints"]).map(|constraint| {
                    let name = constraint["name"].as_str().unwrap_or_default();
                    match kind_of(&constraint["binding"]) {
                        Some(("equality", term)) => {
                            format!("{name} = {}", self.type_of(&term["type"]))
                        }
                        Some((_, bounds)) => format!("{name}{}", self.bounds(bounds)),
                        None => name.to_owned(),
                    }
                });
                let args = list_of(&args["args"]).map(|arg| match kind_of(arg) {
                    Some(("type", arg)) => self.type_of(arg),
                    Some(("lifetime", arg)) => arg.as_str().unwrap_or_default().to_owned(),
                    Some(("const", arg)) => arg["expr"].as_str().unwrap_or_default().to_owned(),
                    _ => "_".to_owned(),
                });
                in_brackets(args.chain(constraints).collect())
            }
            Some(("parenthesized", args)) => {
                let inputs: Vec<_> = list_of(&args["inputs"])
                    .map(|input| self.type_of(input))
                    .collect();
                match &args["output"] {
                    Value::Null => format!("({})", inputs.join(", ")),
                    output => format!("({}) -> {}", inputs.join(", "), self.type_of(output)),
                }
            }
            _ => String::new(),
        }
    }

    /// Returns a type.
    pub fn type_of(&self, value: &Value) -> String {
        let Some((kind, content)) = kind_of(value) else {
            return "()".to_owned();
        };
        let inner = || self.type_of(&content["type"]);
        let mutable = |otherwise| match content["is_mutable"] == true {
            true => "mut ",
            false => otherwise,
        };
        match kind {
            "resolved_path" => self.path(content),
            "generic" | "primitive" => content.as_str().unwrap_or_default().to_owned(),
            "tuple" => {
                let types: Vec<_> = list_of(content).map(|part| self.type_of(part)).collect();
                format!("({})", types.join(", "))
            }
            "slice" => format!("[{}]", self.type_of(content)),
            "array" => format!("[{}; {}]", inner(), content["len"].as_str().unwrap_or("_")),
            "impl_trait" => format!("impl {}", self.sum(content)),
            "dyn_trait" => {
                let traits = list_of(&content["traits"]).map(|part| self.path(&part["trait"]));
                let lifetime = content["lifetime"].as_str().map(str::to_owned);
                format!("dyn {}", Vec::from_iter(traits.chain(lifetime)).join(" + "))
            }
            "borrowed_ref" => {
                let lifetime = content["lifetime"].as_str().map(|l| format!("{l} "));
                format!(
                    "&{}{}{}",
                    lifetime.unwrap_or_default(),
                    mutable(""),
                    inner()
                )
            }
            "raw_pointer" => format!("*{}{}", mutable("const "), inner()),
            "qualified_path" => {
                let name = content["name"].as_str().unwrap_or_default();
                let of = self.type_of(&content["self_type"]);
                match &content["trait"] {
                    Value::Null => format!("{of}::{name}"),
                    of_trait => format!("<{of} as {}>::{name}", self.path(of_trait)),
                }
            }
            "function_pointer" => format!("fn{}", self.signature(&content["sig"])),
            other => other.to_owned(),
        }
    }
}

/// Returns a list in angle brackets, or nothing.
fn in_brackets(list: Vec<String>) -> String {
    match list.is_empty() {
        true => String::new(),
        false => format!("<{}>", list.join(", ")),
    }
}
