//! Turns a sound source into the text that is run: `meta` blanked, the rest wrapped into an async function,
//! and after every wait a word that says in which scope the function goes on. No line is added or moved, and
//! columns can be told back. It never changes what a program computes.
//!
//! What is instrumented in, with `$` for a name the source does not contain:
//! - a function that waits begins with `const $p=$c();`, which keeps the scope it was called in;
//! - `await x` becomes `$r($p,await x)`, and loops `for await` and blocks `finally` begin with `$s($p);`;
//! - `catch (e) {` goes on with `$k(e,$p);`, which does not let an exhausted heap be caught; and because the
//!   engine throws null when it has no room for an error, `throw x` becomes `throw $n(x)` and `new
//!   Promise(f)` becomes `new Promise($x(f))`, which tell a null of the program's own.

use oxc_allocator::ArenaVec;
use oxc_ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, AwaitExpression, BindingIdentifier, BindingPattern,
    CallExpression, CatchClause, Expression, ForOfStatement, Function, FunctionBody, IdentifierReference,
    ImportDeclaration, ImportExpression, ImportMeta, NewExpression, Program, Statement, ThrowStatement,
    TryStatement, UnaryExpression,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::UnaryOperator;
use oxc_syntax::scope::ScopeFlags;

use crate::lints::Lints;
use crate::meta::{self, Remark};
use crate::places::Places;
use crate::rules::Rules;

/// The names a program finds around it, in the order they are handed over.
pub(crate) const NAMES: [&str; 11] = [
    "agent",
    "parallel",
    "pipeline",
    "phase",
    "log",
    "args",
    "budget",
    "workflow",
    "verify",
    "sh",
    "checkpoint",
];

/// A program that can be run.
pub(crate) struct Instrumented {
    /// A module whose default export takes the six words and [`NAMES`] and gives the body.
    pub(crate) text: String,
    inserts: Vec<(usize, usize)>,
}

impl Instrumented {
    /// Where in the source the engine's line and column are; its columns count bytes from 1.
    pub(crate) fn offset(&self, source: &str, places: &Places<'_>, line: u32, column: u32) -> Option<usize> {
        let start = places.start(line)?;
        let mut left = (column as usize).saturating_sub(1);
        let mut at = start;
        // The first line has everything that stands before it; other lines only what was put into them.
        for (place, length) in self.inserts.iter().filter(|(place, _)| *place >= start) {
            let until = place - at;
            if left < until {
                break;
            }
            left -= until;
            at = *place;
            if left < *length {
                return Some(at);
            }
            left -= length;
        }
        Some((at + left).min(source.len()))
    }
}

/// What looking through a program came to.
pub(crate) struct Look {
    pub(crate) problems: Vec<Remark>,
    /// Mistakes that do not keep the program from being run and will go wrong.
    pub(crate) slips: Vec<Remark>,
    inserts: Vec<(u32, String)>,
    word: String,
}

/// Looks through everything behind `meta`.
pub(crate) fn look<'a>(program: &Program<'a>, source: &str) -> Look {
    let mut word = "__convoke".to_owned();
    while source.contains(&word) {
        word.push('_');
    }
    let top = Frame { waits: true, asynchronous: true, start: None };
    let rules = Rules::default();
    let slips = Lints::default();
    let mut instrumenter =
        Instrumenter { source, word, rules, slips, inserts: Vec::new(), frames: vec![top] };
    let meta = program.body.iter().position(|statement| meta::object(statement).is_some());
    for (index, statement) in program.body.iter().enumerate() {
        if Some(index) != meta {
            instrumenter.statement(statement);
        }
    }
    let Instrumenter { word, rules, slips, inserts, .. } = instrumenter;
    Look { problems: rules.into_problems(), slips: slips.into_remarks(), inserts, word }
}

impl Look {
    /// Makes the text that is run, if there are no problems.
    pub(crate) fn instrument(mut self, source: &str, meta: Span) -> Instrumented {
        let word = &self.word;
        let words = ["c", "r", "s", "k", "n", "x"].map(|letter| format!("{word}{letter}"));
        let head = format!(
            "export default({},{})=>async()=>{{const {word}p={word}c();",
            words.join(","),
            NAMES.join(",")
        );
        // Inserts at the same offset stay in the order they were made in, which is from the outside in and
        // then out again.
        self.inserts.sort_by_key(|(at, _)| *at);
        let mut text = String::with_capacity(source.len() * 5 / 4 + head.len());
        let mut inserts = vec![(0, head.len())];
        text.push_str(&head);
        let blank_start = meta.start as usize;
        let blank_end = meta.end as usize;
        // A first line for a shell is a comment.
        let before = &source[..blank_start];
        match before.strip_prefix("#!") {
            Some(rest) => text.extend(["//", rest]),
            None => text.push_str(before),
        }
        for char in source[blank_start..blank_end].chars() {
            match char {
                '\n' | '\r' | '\u{2028}' | '\u{2029}' => text.push(char),
                char => text.extend(std::iter::repeat_n(' ', char.len_utf8())),
            }
        }
        let mut at = blank_end;
        for (place, insert) in self.inserts.iter().filter(|(_, insert)| !insert.is_empty()) {
            let place = *place as usize;
            text.push_str(&source[at..place]);
            text.push_str(insert);
            inserts.push((place, insert.len()));
            at = place;
        }
        text.push_str(&source[at..]);
        text.push_str("\n}");
        Instrumented { text, inserts }
    }
}

/// One function on the way down.
struct Frame {
    asynchronous: bool,
    waits: bool,
    /// Which insert keeps its scope, if it turns out to wait.
    start: Option<usize>,
}

struct Instrumenter<'s> {
    source: &'s str,
    word: String,
    rules: Rules,
    slips: Lints,
    inserts: Vec<(u32, String)>,
    frames: Vec<Frame>,
}

impl Instrumenter<'_> {
    fn insert(&mut self, at: u32, text: String) {
        self.inserts.push((at, text));
    }

    /// The innermost function waits, and can go on elsewhere.
    fn wait(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.waits = true;
        }
    }

    fn in_async(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.asynchronous)
    }

    fn statement<'a>(&mut self, statement: &Statement<'a>) {
        self.visit_statement(statement);
        if let Statement::ForOfStatement(each) = statement
            && each.r#await
        {
            let text = format!(";{0}s({0}p);", self.word);
            self.insert(each.span.end, text);
        }
    }

    fn enter(&mut self, asynchronous: bool, start: Option<u32>) {
        let start = start.map(|at| {
            self.insert(at, String::new());
            self.inserts.len() - 1
        });
        self.frames.push(Frame { asynchronous, waits: false, start });
    }

    /// Leaves a function; `begin` is what its start becomes if it waits.
    fn leave(&mut self, begin: &str) -> bool {
        let Some(frame) = self.frames.pop() else { return false };
        if frame.waits
            && frame.asynchronous
            && let Some(start) = frame.start
        {
            self.inserts[start].1 = format!("{begin}const {0}p={0}c();", self.word);
        }
        frame.waits && frame.asynchronous
    }

    fn body<'a>(&mut self, asynchronous: bool, body: &FunctionBody<'a>) {
        let behind = body.directives.last().map(|directive| directive.span.end);
        self.enter(asynchronous, Some(behind.unwrap_or(body.span.start + 1)));
        self.visit_statements(&body.statements);
        self.leave(if behind.is_some() { ";" } else { "" });
    }

    /// The rest of a node whose leftmost child has been visited.
    fn rest<'a>(&mut self, expression: &Expression<'a>) {
        match expression {
            Expression::BinaryExpression(binary) => self.visit_expression(&binary.right),
            Expression::LogicalExpression(logical) => self.visit_expression(&logical.right),
            Expression::CallExpression(call) => {
                self.rules.call(call);
                self.slips.call(call);
                self.visit_arguments(&call.arguments);
            }
            Expression::ComputedMemberExpression(member) => self.visit_expression(&member.expression),
            Expression::TaggedTemplateExpression(tagged) => self.visit_template_literal(&tagged.quasi),
            _ => {}
        }
    }
}

/// The child that stands leftmost in long chains, which are flat in a source and deep in a tree.
fn leftmost<'s, 'a>(expression: &'s Expression<'a>) -> Option<&'s Expression<'a>> {
    match expression {
        Expression::BinaryExpression(binary) => Some(&binary.left),
        Expression::LogicalExpression(logical) => Some(&logical.left),
        Expression::CallExpression(call) => Some(&call.callee),
        Expression::StaticMemberExpression(member) => Some(&member.object),
        Expression::ComputedMemberExpression(member) => Some(&member.object),
        Expression::PrivateFieldExpression(member) => Some(&member.object),
        Expression::TaggedTemplateExpression(tagged) => Some(&tagged.tag),
        _ => None,
    }
}

impl<'a> VisitJs<'a> for Instrumenter<'_> {
    fn visit_expression(&mut self, expression: &Expression<'a>) {
        let mut chain = Vec::new();
        let mut base = expression;
        while let Some(next) = leftmost(base) {
            chain.push(base);
            base = next;
        }
        walk_js::walk_expression(self, base);
        for node in chain.into_iter().rev() {
            self.rest(node);
        }
    }

    fn visit_statements(&mut self, statements: &ArenaVec<'a, Statement<'a>>) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        match statement {
            Statement::ExportAllDeclaration(_)
            | Statement::ExportDefaultDeclaration(_)
            | Statement::ExportDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_) => {
                let message =
                    "only `meta` is exported, once and first: leave `export` out and `return` the result";
                self.rules.always(statement.span().start, message);
            }
            _ => {}
        }
        walk_js::walk_statement(self, statement);
    }

    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        let message = "`import` is not available in a workflow program: write what is needed into this file";
        self.rules.always(import.span.start, message);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        let message =
            "`import()` is not available in a workflow program: write what is needed into this file";
        self.rules.always(import.span.start, message);
        walk_js::walk_import_expression(self, import);
    }

    fn visit_import_meta(&mut self, meta: &ImportMeta) {
        self.rules.always(
            meta.span.start,
            "`import.meta` is not available in a workflow program: pass what is needed in through args",
        );
    }

    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        self.rules.declare(name.name.as_str());
        self.slips.declare(name.name.as_str());
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        self.rules.name(name);
        self.slips.name(name.name.as_str(), name.span.start);
    }

    fn visit_unary_expression(&mut self, unary: &UnaryExpression<'a>) {
        // To ask whether a name is there is no use of it.
        match &unary.argument {
            Expression::Identifier(name) if unary.operator == UnaryOperator::Typeof => {
                self.slips.asks(name.name.as_str());
            }
            _ => walk_js::walk_unary_expression(self, unary),
        }
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.rules.call(call);
        self.slips.call(call);
        walk_js::walk_call_expression(self, call);
    }

    fn visit_new_expression(&mut self, new: &NewExpression<'a>) {
        self.rules.construct(new);
        let promise = matches!(&new.callee, Expression::Identifier(name) if name.name == "Promise");
        let first = new
            .arguments
            .first()
            .and_then(|first| first.as_expression())
            .filter(|_| promise)
            .map(|first| first.span());
        if let Some(first) = first {
            let open = format!("{}x(", self.word);
            self.insert(first.start, open);
        }
        walk_js::walk_new_expression(self, new);
        if let Some(first) = first {
            self.insert(first.end, ")".to_owned());
        }
    }

    fn visit_throw_statement(&mut self, throw: &ThrowStatement<'a>) {
        // `throw new …` never throws null, and most throws are of this kind.
        if matches!(throw.argument, Expression::NewExpression(_)) {
            return walk_js::walk_throw_statement(self, throw);
        }
        let span = throw.argument.span();
        let open = format!("{}n(", self.word);
        self.insert(span.start, open);
        walk_js::walk_throw_statement(self, throw);
        self.insert(span.end, ")".to_owned());
    }

    fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
        self.wait();
        let open = format!("{0}r({0}p,", self.word);
        self.insert(it.span.start, open);
        walk_js::walk_await_expression(self, it);
        self.insert(it.span.end, ")".to_owned());
    }

    fn visit_for_of_statement(&mut self, each: &ForOfStatement<'a>) {
        if each.r#await {
            self.wait();
            if let Statement::BlockStatement(block) = &each.body {
                let text = format!("{0}s({0}p);", self.word);
                self.insert(block.span.start + 1, text);
            }
        }
        walk_js::walk_for_of_statement(self, each);
    }

    fn visit_try_statement(&mut self, it: &TryStatement<'a>) {
        let caught = u32::from(it.handler.is_some());
        self.slips.caught += caught;
        self.visit_block_statement(&it.block);
        self.slips.caught -= caught;
        if let Some(handler) = &it.handler {
            self.visit_catch_clause(handler);
        }
        if let Some(finalizer) = &it.finalizer {
            if self.in_async() {
                self.wait();
                let text = format!("{0}s({0}p);", self.word);
                self.insert(finalizer.span.start + 1, text);
            }
            self.visit_block_statement(finalizer);
        }
    }

    fn visit_catch_clause(&mut self, catch: &CatchClause<'a>) {
        let word = self.word.clone();
        let name = match catch.param.as_ref().map(|param| &param.pattern) {
            None => {
                self.insert(catch.body.span.start, format!("({word}e)"));
                format!("{word}e")
            }
            Some(BindingPattern::BindingIdentifier(name)) => {
                self.source[name.span.start as usize..name.span.end as usize].to_owned()
            }
            // A pattern gives no name to check; the next limit stops the program then.
            Some(_) => "0".to_owned(),
        };
        let asynchronous = self.in_async();
        if asynchronous {
            self.wait();
        }
        let scope = if asynchronous { format!(",{word}p") } else { String::new() };
        self.insert(catch.body.span.start + 1, format!("{word}k({name}{scope});"));
        walk_js::walk_catch_clause(self, catch);
    }

    fn visit_function(&mut self, function: &Function<'a>, _flags: ScopeFlags) {
        if let Some(name) = &function.id {
            self.visit_binding_identifier(name);
        }
        self.visit_formal_parameters(&function.params);
        if let Some(body) = &function.body {
            self.body(function.r#async, body);
        }
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.visit_formal_parameters(&arrow.params);
        match &arrow.body {
            ArrowFunctionBody::FunctionBody(body) => self.body(arrow.r#async, body),
            body => {
                let Some(expression) = body.as_expression() else { return };
                let span = expression.span();
                self.enter(arrow.r#async, Some(span.start));
                let start = self.inserts.len() - 1;
                self.visit_expression(expression);
                if self.leave("{") {
                    self.inserts[start].1.push_str("return ");
                    self.insert(span.end, "}".to_owned());
                }
            }
        }
    }
}
