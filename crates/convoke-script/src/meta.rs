//! Reads `meta`, the literal in which a program describes itself. It looks
//! at the syntax tree and evaluates nothing.

use oxc_ast::ast::{
    ArrayExpressionElement, BindingPattern, Declaration, Expression, ObjectExpression, ObjectPropertyKind,
    PropertyKey, PropertyKind, Statement, VariableDeclarationKind,
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};
use serde_json::{Map, Number, Value};

use crate::crossing;
use crate::protocol::{Meta, Phase};

/// How many characters a name may have.
const NAME_CHARS: usize = 100;

/// Something odd at an offset.
pub(crate) type Remark = (u32, String);

/// The result of reading: the meta, what is wrong, and what is merely odd.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) meta: Meta,
    pub(crate) problems: Vec<Remark>,
    pub(crate) warnings: Vec<Remark>,
}

/// The object of `export const meta = {…}`, if this statement is that.
pub(crate) fn object<'s, 'a>(statement: &'s Statement<'a>) -> Option<&'s Expression<'a>> {
    let Statement::ExportDeclaration(export) = statement else { return None };
    let Declaration::VariableDeclaration(variables) = &export.declaration else { return None };
    let [one] = variables.declarations.as_slice() else { return None };
    let BindingPattern::BindingIdentifier(name) = &one.id else { return None };
    (variables.kind == VariableDeclarationKind::Const && name.name == "meta").then_some(())?;
    one.init.as_ref()
}

/// Reads the literal.
pub(crate) fn read(init: &Expression) -> Read {
    let mut read = Read::default();
    let Expression::ObjectExpression(object) = init.without_parentheses() else {
        read.problems.push((
            init.span().start,
            "`meta` must be an object literal: {name: '…', description: '…'}".to_owned(),
        ));
        return read;
    };
    let members = object_members(object, &mut read.problems);
    if !read.problems.is_empty() {
        return read;
    }
    let at = object.span.start;
    let mut required = |key: &str| match members.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        Some(_) => {
            read.problems.push((at, format!("`{key}` in `meta` must be a string that is not empty")));
            String::new()
        }
        None => {
            read.problems.push((at, format!("`meta` needs a `{key}`: add {key}: '…'")));
            String::new()
        }
    };
    let name = required("name");
    let description = required("description");
    if !crossing::is_line(&name) || name.chars().count() > NAME_CHARS {
        let message = format!(
            "`name` in `meta` must be one line of at most {NAME_CHARS} characters, without control \
                characters: put more into the `description`"
        );
        read.problems.push((at, message));
    }
    let when_to_use = match members.get("whenToUse") {
        Some(Value::String(text)) => Some(text.clone()),
        None | Some(Value::Null) => None,
        Some(_) => {
            read.warnings.push((at, "`whenToUse` in `meta` is no string and is left out".to_owned()));
            None
        }
    };
    let phases = phases(members.get("phases"), at, &mut read);
    read.meta = Meta { name, description, when_to_use, phases };
    read
}

fn phases(value: Option<&Value>, at: u32, read: &mut Read) -> Vec<Phase> {
    let items = match value {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => {
            read.warnings.push((at, "`phases` in `meta` is no array and is left out".to_owned()));
            return Vec::new();
        }
    };
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut phases = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let title = item.as_str().map(str::to_owned).or_else(|| text(item, "title"));
        match title {
            Some(title) if !crossing::is_line(&title) => {
                let message = format!(
                    "the title of phase {} in `meta` must be one line without control characters: put more \
                        into its `detail`",
                    index + 1
                );
                read.problems.push((at, message));
            }
            Some(title) => {
                phases.push(Phase { title, detail: text(item, "detail"), model: text(item, "model") })
            }
            None => read
                .warnings
                .push((at, format!("phase {} in `meta` has no title and is left out", index + 1))),
        }
    }
    phases
}

/// The value of a literal; `None` if it is no literal, and then a problem has been added.
fn literal(expression: &Expression, problems: &mut Vec<Remark>) -> Option<Value> {
    let expression = expression.without_parentheses();
    match expression {
        Expression::StringLiteral(text) => Some(Value::String(text.value.to_string())),
        Expression::BooleanLiteral(flag) => Some(Value::Bool(flag.value)),
        Expression::NullLiteral(_) => Some(Value::Null),
        Expression::NumericLiteral(number) => finite(number.value, expression.span(), problems),
        Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::UnaryNegation => {
            match unary.argument.without_parentheses() {
                Expression::NumericLiteral(number) => finite(-number.value, expression.span(), problems),
                _ => refuse(expression, problems),
            }
        }
        Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
            let [only] = template.quasis.as_slice() else { return refuse(expression, problems) };
            only.value.cooked.as_ref().map(|text| Value::String(text.to_string()))
        }
        Expression::BinaryExpression(_) => joined(expression, problems),
        Expression::ArrayExpression(array) => {
            let before = problems.len();
            let items = array.elements.iter().filter_map(|element| match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    said(spread.span, "`...` in `meta`", problems)
                }
                ArrayExpressionElement::Elision(hole) => {
                    said(hole.span, "a hole in an array of `meta`", problems)
                }
                element => element.as_expression().and_then(|item| literal(item, problems)),
            });
            let items: Vec<Value> = items.collect();
            (problems.len() == before).then_some(Value::Array(items))
        }
        Expression::ObjectExpression(object) => Some(Value::Object(object_members(object, problems))),
        other => refuse(other, problems),
    }
}

/// `'a' + 'b'` of constant strings, as long as it is.
fn joined(expression: &Expression, problems: &mut Vec<Remark>) -> Option<Value> {
    let mut parts = Vec::new();
    let mut rest = expression;
    while let Expression::BinaryExpression(binary) = rest.without_parentheses() {
        if binary.operator != BinaryOperator::Addition {
            return refuse(rest, problems);
        }
        parts.push(&binary.right);
        rest = &binary.left;
    }
    parts.push(rest);
    let mut text = String::new();
    for part in parts.into_iter().rev() {
        match part.without_parentheses() {
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => match literal(part, problems)? {
                Value::String(piece) => text.push_str(&piece),
                _ => return refuse(part, problems),
            },
            _ => return refuse(part, problems),
        }
    }
    Some(Value::String(text))
}

fn object_members(object: &ObjectExpression, problems: &mut Vec<Remark>) -> Map<String, Value> {
    let mut members = Map::new();
    for property in &object.properties {
        let property = match property {
            ObjectPropertyKind::ObjectProperty(property) => property,
            ObjectPropertyKind::SpreadProperty(spread) => {
                said(spread.span, "`...` in `meta`", problems);
                continue;
            }
        };
        if property.computed {
            said(property.span, "a computed key in `meta`", problems);
            continue;
        }
        if property.method || property.kind != PropertyKind::Init {
            said(property.span, "a function in `meta`", problems);
            continue;
        }
        if property.shorthand {
            said(property.span, "a name without a value in `meta`", problems);
            continue;
        }
        let key = match &property.key {
            PropertyKey::StaticIdentifier(name) => name.name.to_string(),
            PropertyKey::StringLiteral(text) => text.value.to_string(),
            PropertyKey::NumericLiteral(number) => number.value.to_string(),
            other => {
                said(other.span(), "such a key in `meta`", problems);
                continue;
            }
        };
        if matches!(key.as_str(), "__proto__" | "constructor" | "prototype") {
            problems.push((
                property.span.start,
                format!("`{key}` may not be a key in `meta`; give it another name"),
            ));
            continue;
        }
        if let Some(value) = literal(&property.value, problems) {
            members.insert(key, value);
        }
    }
    members
}

fn finite(number: f64, span: Span, problems: &mut Vec<Remark>) -> Option<Value> {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    let value = if number.fract() == 0.0 && number.abs() < WHOLE {
        // In this range the conversion loses nothing.
        Some(Number::from(number as i64))
    } else {
        Number::from_f64(number)
    };
    if value.is_none() {
        problems.push((span.start, "this number in `meta` is too large; write it as a string".to_owned()));
    }
    value.map(Value::Number)
}

fn refuse(expression: &Expression, problems: &mut Vec<Remark>) -> Option<Value> {
    let what = match expression {
        Expression::Identifier(_) => "a name in `meta`",
        Expression::CallExpression(_) | Expression::NewExpression(_) | Expression::ChainExpression(_) => {
            "a call in `meta`"
        }
        Expression::TemplateLiteral(_) | Expression::TaggedTemplateExpression(_) => {
            "a template with `${…}` in `meta`"
        }
        Expression::RegExpLiteral(_) => "a regular expression in `meta`",
        Expression::FunctionExpression(_)
        | Expression::ArrowFunctionExpression(_)
        | Expression::ClassExpression(_) => "a function in `meta`",
        _ => "an expression in `meta`",
    };
    said(expression.span(), what, problems)
}

fn said(span: Span, what: &str, problems: &mut Vec<Remark>) -> Option<Value> {
    problems.push((
        span.start,
        format!(
            "{what} is not allowed, because `meta` is read and never run: write strings, numbers, true, \
            false, null, arrays and objects of these"
        ),
    ));
    None
}
