//! Mistakes of an author that do not keep a program from being run, but make it fail or do something else
//! than was meant once it comes there: names that nothing defines, misspelt options, and promises in the
//! place of functions. It judges and changes nothing.

use std::collections::BTreeSet;

use oxc_ast::ast::{
    Argument, ArrayExpressionElement, ArrowFunctionBody, CallExpression, Expression, ObjectPropertyKind,
    PropertyKey,
};
use oxc_span::GetSpan;

use crate::instrument::NAMES;
use crate::meta::Remark;

/// The other names a program has: those of the language that are not taken away.
const GLOBALS: &[&str] = &[
    "Object",
    "Error",
    "EvalError",
    "RangeError",
    "ReferenceError",
    "SyntaxError",
    "TypeError",
    "URIError",
    "InternalError",
    "AggregateError",
    "SuppressedError",
    "Iterator",
    "Array",
    "parseInt",
    "parseFloat",
    "isNaN",
    "isFinite",
    "queueMicrotask",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "Infinity",
    "NaN",
    "undefined",
    "Number",
    "Boolean",
    "String",
    "Math",
    "Reflect",
    "Symbol",
    "DisposableStack",
    "globalThis",
    "BigInt",
    "Date",
    "RegExp",
    "JSON",
    "Proxy",
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "ArrayBuffer",
    "Uint8ClampedArray",
    "Int8Array",
    "Uint8Array",
    "Int16Array",
    "Uint16Array",
    "Int32Array",
    "Uint32Array",
    "BigInt64Array",
    "BigUint64Array",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "DataView",
    "Promise",
    "AsyncDisposableStack",
    "URL",
    "URLSearchParams",
    "structuredClone",
    "setTimeout",
    "clearTimeout",
    "console",
    "Function",
    "arguments",
];

/// Names that the rules report already.
const RULED: [&str; 2] = ["eval", "WebAssembly"];

/// Names that browsers, Node and the like have and a workflow program has not.
const ELSEWHERE: [&str; 14] = [
    "require",
    "process",
    "module",
    "exports",
    "Buffer",
    "fetch",
    "fs",
    "window",
    "document",
    "performance",
    "__dirname",
    "__filename",
    "setInterval",
    "crypto",
];

const AGENT_OPTIONS: &[&str] =
    &["label", "phase", "schema", "model", "effort", "isolation", "agentType", "tools"];
const VERIFY_OPTIONS: &[&str] = &["voters", "label"];

/// Functions that begin work at once and give a promise of it.
const BEGINS: [&str; 7] = ["agent", "verify", "sh", "workflow", "checkpoint", "parallel", "pipeline"];

/// Collects mistakes while a tree is walked.
#[derive(Default)]
pub(crate) struct Lints {
    declared: BTreeSet<String>,
    /// Names that the program asks for by `typeof`, or uses where it catches what is thrown: it knows that
    /// they may be missing.
    guarded: BTreeSet<String>,
    used: Vec<(String, u32)>,
    /// What is a mistake unless the program declares the name for itself.
    found: Vec<(&'static str, Remark)>,
    /// How many `try` are around.
    pub(crate) caught: u32,
}

impl Lints {
    /// Everything that was found, in the order it stands there.
    pub(crate) fn into_remarks(self) -> Vec<Remark> {
        let Self { declared, guarded, used, found, .. } = self;
        let kept = found.into_iter().filter(|(name, _)| !declared.contains(*name));
        let mut remarks: Vec<Remark> = kept.map(|(_, remark)| remark).collect();
        let known = |name: &str| {
            declared.contains(name)
                || NAMES.contains(&name)
                || GLOBALS.contains(&name)
                || RULED.contains(&name)
        };
        let mut told = BTreeSet::new();
        for (name, at) in used {
            if known(&name) || guarded.contains(&name) || !told.insert(name.clone()) {
                continue;
            }
            let candidates = declared.iter().map(String::as_str).chain(NAMES).chain(GLOBALS.iter().copied());
            let why = match nearest(&name, candidates) {
                _ if ELSEWHERE.contains(&name.as_str()) => "it is not there in a workflow program".to_owned(),
                Some(near) => format!("the nearest name is `{near}`"),
                None => "declare it, or pass it in through args".to_owned(),
            };
            remarks.push((at, format!("`{name}` is not defined: {why}")));
        }
        remarks.sort();
        remarks
    }

    /// A name is declared somewhere. The scope is not looked at: a name
    /// that is declared elsewhere is not misspelt.
    pub(crate) fn declare(&mut self, name: &str) {
        self.declared.insert(name.to_owned());
    }

    /// The program asks whether a name is there.
    pub(crate) fn asks(&mut self, name: &str) {
        self.guarded.insert(name.to_owned());
    }

    /// A name is used.
    pub(crate) fn name(&mut self, name: &str, at: u32) {
        if self.caught > 0 {
            self.guarded.insert(name.to_owned());
        } else {
            self.used.push((name.to_owned(), at));
        }
    }

    /// A call.
    pub(crate) fn call(&mut self, call: &CallExpression) {
        let Expression::Identifier(callee) = call.callee.without_parentheses() else { return };
        match callee.name.as_str() {
            "agent" => self.options("agent", AGENT_OPTIONS, call),
            "verify" => self.options("verify", VERIFY_OPTIONS, call),
            "parallel" => self.functions(call),
            _ => {}
        }
    }

    /// Options that are written out, each with the one that was most likely meant.
    fn options(&mut self, what: &'static str, known: &[&'static str], call: &CallExpression) {
        let Some(Expression::ObjectExpression(object)) =
            call.arguments.get(1).and_then(Argument::as_expression)
        else {
            return;
        };
        for property in &object.properties {
            let ObjectPropertyKind::ObjectProperty(property) = property else { continue };
            let name = match &property.key {
                PropertyKey::StaticIdentifier(name) => name.name.as_str(),
                PropertyKey::StringLiteral(text) => text.value.as_str(),
                _ => continue,
            };
            // An option that is near no known one is the script's own; it is left out, and the log says so.
            if !known.contains(&name)
                && let Some(near) = nearest(name, known.iter().copied())
            {
                let message =
                    format!("{what}() has no option `{name}` and would ignore it: the nearest is `{near}`");
                self.found.push((what, (property.span.start, message)));
            }
        }
    }

    /// `parallel([agent('a')])` and `parallel(list.map(x => agent(x)))`.
    fn functions(&mut self, call: &CallExpression) {
        let Some(first) = call.arguments.first().and_then(Argument::as_expression) else { return };
        match first.without_parentheses() {
            Expression::ArrayExpression(list) => {
                let promises = list.elements.iter().filter_map(ArrayExpressionElement::as_expression);
                for promise in promises.filter(|one| begins(one)) {
                    self.promise(promise.span().start);
                }
            }
            Expression::CallExpression(mapped) => {
                let Expression::StaticMemberExpression(member) = &mapped.callee else { return };
                if !matches!(member.property.name.as_str(), "map" | "flatMap") {
                    return;
                }
                let Some(Expression::ArrowFunctionExpression(arrow)) =
                    mapped.arguments.first().and_then(Argument::as_expression)
                else {
                    return;
                };
                let body = match &arrow.body {
                    ArrowFunctionBody::FunctionBody(_) => None,
                    body => body.as_expression(),
                };
                if arrow.r#async || body.is_some_and(begins) {
                    self.promise(arrow.span.start);
                }
            }
            _ => {}
        }
    }

    fn promise(&mut self, at: u32) {
        let message = "parallel() wants functions and is given a promise: write `() => agent(…)`, so that it \
            begins the work itself";
        self.found.push(("parallel", (at, message.to_owned())));
    }
}

/// Whether an expression is a call that begins work and gives a promise.
fn begins(expression: &Expression) -> bool {
    let Expression::CallExpression(call) = expression.without_parentheses() else { return false };
    match call.callee.without_parentheses() {
        Expression::Identifier(callee) => BEGINS.contains(&callee.name.as_str()),
        // `agent(x).catch(…)` is a promise too.
        Expression::StaticMemberExpression(member) => {
            matches!(member.property.name.as_str(), "then" | "catch" | "finally") && begins(&member.object)
        }
        _ => false,
    }
}

/// The candidate that differs from the name by one or two slips of the pen.
fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let letters = name.chars().count();
    let allowed = if letters < 5 { 1 } else { 2 };
    let scored = candidates.map(|candidate| {
        let slips = strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase());
        (slips, candidate)
    });
    scored.filter(|(slips, _)| *slips <= allowed && slips * 2 < letters).min().map(|(_, candidate)| candidate)
}
