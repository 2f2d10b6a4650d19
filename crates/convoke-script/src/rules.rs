//! What a program may not say, found on its syntax tree. Text in strings and comments is
//! not looked at. It judges and changes nothing; the ways around it, such as another name
//! for `Date.now`, throw when they are run.

use std::collections::BTreeSet;

use oxc_ast::ast::{CallExpression, Expression, IdentifierReference, NewExpression};

use crate::meta::Remark;

/// Names that a program may declare for itself; it may use them as it likes then.
const WATCHED: [&str; 6] = ["Date", "Math", "performance", "Function", "eval", "WebAssembly"];

/// Collects what is wrong while a tree is walked.
#[derive(Default)]
pub(crate) struct Rules {
    found: Vec<(Option<&'static str>, Remark)>,
    declared: BTreeSet<&'static str>,
}

impl Rules {
    /// Everything that was wrong, in no particular order.
    pub(crate) fn into_problems(self) -> Vec<Remark> {
        let Self { found, declared } = self;
        let kept = found.into_iter().filter(|(name, _)| name.is_none_or(|name| !declared.contains(name)));
        kept.map(|(_, remark)| remark).collect()
    }

    /// Something that is wrong whatever is declared.
    pub(crate) fn always(&mut self, at: u32, message: &str) {
        self.found.push((None, (at, message.to_owned())));
    }

    /// A name is declared somewhere.
    pub(crate) fn declare(&mut self, name: &str) {
        self.declared.extend(WATCHED.iter().find(|watched| **watched == name));
    }

    /// A name is used, not as the operand of `typeof`.
    pub(crate) fn name(&mut self, name: &IdentifierReference) {
        match name.name.as_str() {
            "eval" => self.on(
                "eval",
                name.span.start,
                "`eval` is not available: code cannot be made from text; write it out",
            ),
            "WebAssembly" => self.on(
                "WebAssembly",
                name.span.start,
                "`WebAssembly` is not available in a workflow program",
            ),
            _ => {}
        }
    }

    /// A call.
    pub(crate) fn call(&mut self, call: &CallExpression) {
        let at = call.span.start;
        match call.callee.without_parentheses() {
            Expression::Identifier(name) if name.name == "Date" => self.on("Date", at, &no_clock("Date()")),
            Expression::Identifier(name) if name.name == "Function" => self.function(at),
            callee => match member(callee) {
                Some(("Date", "now")) => self.on("Date", at, &no_clock("Date.now()")),
                Some(("performance", "now")) => self.on("performance", at, &no_clock("performance.now()")),
                Some(("Math", "random")) => self.on(
                    "Math",
                    at,
                    "`Math.random()` is not available, because a resumed run must come to the same calls: \
                        vary by index instead",
                ),
                Some(("globalThis", "Function")) => self.function(at),
                _ => {}
            },
        }
    }

    /// A `new`.
    pub(crate) fn construct(&mut self, new: &NewExpression) {
        let at = new.span.start;
        match new.callee.without_parentheses() {
            Expression::Identifier(name) if name.name == "Date" && new.arguments.is_empty() => {
                self.on("Date", at, &no_clock("new Date()"));
            }
            Expression::Identifier(name) if name.name == "Function" => self.function(at),
            callee if member(callee) == Some(("globalThis", "Function")) => self.function(at),
            _ => {}
        }
    }

    fn function(&mut self, at: u32) {
        self.on(
            "Function",
            at,
            "`Function` is not available: code cannot be made from text; write the function out",
        );
    }

    fn on(&mut self, name: &'static str, at: u32, message: &str) {
        self.found.push((Some(name), (at, message.to_owned())));
    }
}

fn no_clock(what: &str) -> String {
    format!(
        "`{what}` is not available, because a resumed run must come to the same calls: pass timestamps in \
            through args"
    )
}

/// The last two names of `Date.now`, `Date['now']`, `globalThis.Date.now`.
fn member<'e>(expression: &'e Expression) -> Option<(&'e str, &'e str)> {
    let (object, property) = match expression {
        Expression::StaticMemberExpression(member) => (&member.object, member.property.name.as_str()),
        Expression::ComputedMemberExpression(member) => match &member.expression {
            Expression::StringLiteral(text) => (&member.object, text.value.as_str()),
            _ => return None,
        },
        _ => return None,
    };
    let owner = match object.without_parentheses() {
        Expression::Identifier(name) => name.name.as_str(),
        Expression::StaticMemberExpression(outer) => match &outer.object {
            Expression::Identifier(name) if name.name == "globalThis" => outer.property.name.as_str(),
            _ => return None,
        },
        _ => return None,
    };
    Some((owner, property))
}
