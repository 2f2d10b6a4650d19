//! Makes sources by dice: damaged scripts, and literals for `meta` of which it is known whether they are
//! allowed. A seed is all there is to know about a source.

use std::fmt::Write as _;

/// A small generator.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Everything follows from the seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// The dice of one case of many.
    pub(crate) fn of_case(seed: u64, case: u64) -> Self {
        let mut dice = Self::new(seed.wrapping_add(case.wrapping_mul(0xd134_2543_de82_ef95)));
        dice.below(2);
        dice
    }

    /// A number below the limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub(crate) fn one_of<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

/// Pieces that mean something, so that damage is not only noise.
const PIECES: &[&str] = &[
    "await agent('x')",
    "await parallel([() => agent('a'), () => { throw 1 }])",
    "await pipeline([1, 2], x => x, (p, o, i) => agent(`${p}${o}${i}`))",
    "return ",
    "throw new Error('x')\n",
    "phase('p')\n",
    "log(`l`)\n",
    "await workflow('child_brief', null)",
    "await new Promise(r => setTimeout(r, 5))",
    "await Promise.all([agent('a'), agent('b')])",
    "try { ",
    " } catch (e) { log(String(e)) }",
    " } finally { }",
    "while (budget.remaining() > 5) { ",
    "for (const x of [1, 2, 3]) { ",
    "for (;;) { ",
    "if (x) ",
    "} else {",
    "async () => { ",
    "function* g() { yield 1 }\n",
    "({ get a() { return 1 } })",
    "new Proxy({}, {})",
    "new Set([1])",
    "`${",
    "}`",
    "/a+/u",
    "?.",
    "??",
    "...",
    "=>",
    "**",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'",
    "\"",
    "`",
    "/*",
    "*/",
    "//",
    "\n",
    "\r",
    "\u{2028}",
    "\u{feff}",
    "\0",
    "\\u0065val",
    "Date.now()",
    "Math.random()",
    "import('x')",
    "import x from 'x'\n",
    "export const y = 1\n",
    "eval('1')",
    "globalThis",
    "undefined",
    "null",
    "NaN",
    "-0",
    "1n",
    "1e999",
    "0x7fffffff",
    "Symbol.iterator",
    "__proto__",
    "constructor",
    "async ",
    "await ",
    "label: ",
    "with (x) ",
    "<!--",
    "-->",
    "😀",
];

/// A script with some damage.
pub(crate) fn damaged(seeds: &[String], dice: &mut Dice) -> String {
    let mut text = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(4) {
        damage(&mut text, seeds, dice);
    }
    text
}

fn damage(text: &mut String, seeds: &[String], dice: &mut Dice) {
    let at = boundary(text, dice.below(text.len() + 1));
    let end = boundary(text, at + dice.below(80));
    match dice.below(8) {
        0 => text.replace_range(at..end, ""),
        1 => {
            let copy = text[at..end].to_owned();
            let to = boundary(text, dice.below(text.len() + 1));
            text.insert_str(to, &copy);
        }
        2..=4 => text.insert_str(at, dice.one_of(PIECES)),
        5 => {
            let other = &seeds[dice.below(seeds.len())];
            let from = boundary(other, dice.below(other.len() + 1));
            let to = boundary(other, from + dice.below(400));
            text.insert_str(at, &other[from..to]);
        }
        6 => {
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            let one = dice.below(lines.len());
            let two = dice.below(lines.len());
            match dice.below(3) {
                0 if !lines.is_empty() => drop(lines.remove(one)),
                1 if !lines.is_empty() => lines.insert(two, lines[one]),
                _ if !lines.is_empty() => lines.swap(one, two),
                _ => {}
            }
            *text = lines.concat();
        }
        _ => {
            // One character becomes another.
            if let Some(c) = text[at..].chars().next() {
                let piece = dice.one_of(PIECES);
                text.replace_range(at..at + c.len_utf8(), piece);
            }
        }
    }
}

fn boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

/// A source with a literal, and whether that literal is one that `meta` may be.
pub(crate) fn meta_source(dice: &mut Dice) -> (String, bool) {
    let mut sound = true;
    let mut out = String::from("export const meta = {");
    let _ = write!(out, "{}: {}, ", key("name", dice), text("fuzzed", dice));
    let _ = write!(out, "{}: {}, ", key("description", dice), text("made by dice", dice));
    for n in 0..dice.below(6) {
        let _ = write!(out, "{}: ", key(&format!("k{n}"), dice));
        literal(&mut out, dice, 0, &mut sound);
        out.push_str(dice.one_of(&[", ", ",\n", ",/* c */", ", // c\n"]));
    }
    out.push('}');
    out.push_str(dice.one_of(&["\n", ";\n", ";", " ;\n", "\n// comment\n"]));
    if dice.once_in(2) {
        out.push_str("return 1\n");
    }
    (out, sound)
}

fn key(name: &str, dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => format!("'{name}'"),
        1 => format!("\"{name}\""),
        _ => name.to_owned(),
    }
}

fn text(words: &str, dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => format!("'{words}'"),
        1 => format!("\"{words}\""),
        2 => format!("`{words}`"),
        3 => format!("'{words}' + \" and more\""),
        _ => format!("'\\u201c{words}\\u201d \\x41 \\u{{1f600}}'"),
    }
}

/// Things a literal may not hold.
const FORBIDDEN: &[&str] = &[
    "x",
    "f()",
    "(() => 1)()",
    "`a${1}b`",
    "/x/",
    "+1",
    "!0",
    "typeof 1",
    "[1, , 2]",
    "[...[]]",
    "{ ...{} }",
    "{ ['a']: 1 }",
    "{ a() {} }",
    "{ get a() { return 1 } }",
    "{ __proto__: null }",
    "{ 'constructor': 1 }",
    "{ prototype: 1 }",
    "function () {}",
    "class {}",
    "new Date(0)",
    "1n",
    "undefined",
    "(1, 2)",
    "1 + 1",
    "a ? 1 : 2",
    "tag`x`",
    "{ a }",
    "async () => 1",
    "void 0",
    "-x",
];

fn literal(out: &mut String, dice: &mut Dice, depth: usize, sound: &mut bool) {
    if dice.once_in(25) {
        *sound = false;
        out.push_str(dice.one_of(FORBIDDEN));
        return;
    }
    match dice.below(if depth > 4 { 6 } else { 9 }) {
        0 => out.push_str(dice.one_of(&[
            "0",
            "1",
            "-1",
            "1.5",
            "-2e3",
            "0x1f",
            "1_000",
            "9007199254740993",
            "1e21",
            ".5",
        ])),
        1 => out.push_str(dice.one_of(&["true", "false", "null"])),
        2..=5 => out.push_str(&text("some text", dice)),
        6 => {
            out.push('[');
            for n in 0..dice.below(4) {
                if n > 0 {
                    out.push_str(", ");
                }
                literal(out, dice, depth + 1, sound);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for n in 0..dice.below(4) {
                let name = format!("n{n}");
                let _ = write!(out, "{}: ", key(&name, dice));
                literal(out, dice, depth + 1, sound);
                out.push_str(", ");
            }
            out.push('}');
        }
    }
}
