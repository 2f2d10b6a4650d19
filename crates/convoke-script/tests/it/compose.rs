//! Writes programs that are always sound, out of every kind of statement and expression in which a wait can
//! stand. Loops are bounded, so such a program ends by itself. A seed is all there is to know about it.

use std::fmt::Write as _;

use crate::mutate::Dice;

/// A program.
pub(crate) fn composed(dice: &mut Dice) -> String {
    let mut composer = Composer { dice, out: String::new(), names: 0 };
    composer.out.push_str("export const meta = { name: 'composed', description: 'made by dice' }\n");
    composer.out.push_str(
        "const seen = []\nconst note = x => { seen.push(x); return x }\nlet a = 1, b = 'two', c = [3], d = \
            { e: 4 }\n",
    );
    for _ in 0..=composer.dice.below(6) {
        composer.statement(0, true);
    }
    composer.out.push_str("return { seen, a, b, c, d }\n");
    composer.out
}

struct Composer<'d> {
    dice: &'d mut Dice,
    out: String,
    names: usize,
}

impl Composer<'_> {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    /// One statement. `waits` says whether an `await` may stand here.
    fn statement(&mut self, depth: usize, waits: bool) {
        let e = self.expression(depth, waits);
        let f = self.expression(depth + 1, waits);
        let name = self.name();
        let kinds = if depth > 2 { 6 } else { 17 };
        match self.dice.below(kinds) {
            0 => self.line(&format!("note({e})")),
            1 => self.line(&format!("const {name} = {e}; note({name})")),
            2 => self.line(&format!("a = {e}; b = `${{a}}${{{f}}}`")),
            3 => {
                self.line(&format!("const {{ x: {name} = {e}, ...rest{name} }} = {{ y: {f} }}; note({name})"))
            }
            4 => self.line(&format!("const [{name} = {e}, ...more{name}] = [undefined, {f}]; note({name})")),
            5 => self.line(&format!("c.push({e}, ...[{f}]); d['k' + {f}] = {e}")),
            6 => self.block(&format!("if ({e})"), depth, waits, Some("else")),
            7 => self.block(&format!("for (let {name} = 0; {name} < 2; {name}++)"), depth, waits, None),
            8 => self.block(&format!("for (const {name} of [{e}, {f}])"), depth, waits, None),
            9 => self.block(&format!("for (const {name} in {{ p: {e}, q: {f} }})"), depth, waits, None),
            10 => {
                self.block("try", depth, waits, None);
                let thrown = self.name();
                self.block(&format!("catch ({thrown})"), depth, waits, Some("finally"));
            }
            11 => {
                self.line(&format!(
                    "try {{ throw new Error(String({e})) }} catch {{ note({f}) }} finally {{ note('f') }}"
                ));
            }
            12 => {
                let waited = self.expression(depth + 1, true);
                self.line(&format!("async function {name}(x = 1, ...y) {{ note({waited}); return x }}"));
                let call = if waits { "await " } else { "" };
                self.line(&format!("note(typeof ({call}{name}({e})))"));
            }
            13 => {
                self.line(&format!(
                    "function* g{name}() {{ const got = yield 1; yield* [2, got]; return 3 }}"
                ));
                self.line(&format!(
                    "note([...g{name}()]); switch ({e}) {{ case 1: note('one'); default: note({f}) }}"
                ));
            }
            14 if waits => {
                let waited = self.expression(depth + 1, true);
                self.line(&format!(
                    "async function* ag{name}() {{ yield 1; yield {waited}; try {{ yield 2 }} \
                    finally {{ note('end') }} }}"
                ));
                self.line(&format!("for await (const v of ag{name}()) {{ note(v); if (v === 2) break }}"));
            }
            15 => {
                let waited = self.expression(depth + 1, true);
                self.line(&format!(
                    "class C{name} {{ #p = 1; static s = 2; async m(x) {{ this.#p += 1; \
                    note({waited}); return [this.#p, x] }} get g() {{ return this.#p }} }}"
                ));
                if waits {
                    self.line(&format!("note(await new C{name}().m({e}))"));
                }
            }
            _ => {
                self.line(&format!(
                    "l{name}: for (const i of [1, 2]) {{ for (;;) {{ if (i === 1) continue \
                    l{name}; note(i); break l{name} }} }}"
                ));
            }
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn block(&mut self, head: &str, depth: usize, waits: bool, tail: Option<&str>) {
        let _ = write!(self.out, "{head} {{ ");
        self.statement(depth + 1, waits);
        self.out.push_str("} ");
        if let Some(tail) = tail {
            let _ = write!(self.out, "{tail} {{ ");
            self.statement(depth + 1, waits);
            self.out.push('}');
        }
        self.out.push('\n');
    }

    fn expression(&mut self, depth: usize, waits: bool) -> String {
        let leaf = depth > 3;
        match self.dice.below(if leaf { 6 } else { 26 }) {
            0 => self.dice.below(10).to_string(),
            1 => format!("'s{}'", self.dice.below(10)),
            2 => self
                .dice
                .one_of(&["a", "b", "c.length", "d?.e", "d?.z?.y", "null", "true", "(undefined ?? 7)"])
                .to_owned(),
            3 | 4 if waits => format!("await agent('p{}')", self.dice.below(100)),
            3 | 4 => "seen.length".to_owned(),
            5 => format!("`t${{{}}}`", self.dice.below(5)),
            6 if waits => format!("(await {})", self.expression(depth + 1, true)),
            7 => format!("[{}, {}]", self.expression(depth + 1, waits), self.expression(depth + 1, waits)),
            8 => format!(
                "({{ x: {}, [`k${{{}}}`]: 1 }})",
                self.expression(depth + 1, waits),
                self.expression(depth + 1, waits)
            ),
            9 => format!(
                "({} ? {} : {})",
                self.expression(depth + 1, waits),
                self.expression(depth + 1, waits),
                self.expression(depth + 1, waits)
            ),
            10 => format!("({} ?? {})", self.expression(depth + 1, waits), self.expression(depth + 1, waits)),
            11 => format!("({} && {})", self.expression(depth + 1, waits), self.expression(depth + 1, waits)),
            12 => format!("note({})", self.expression(depth + 1, waits)),
            13 => format!(
                "(x => [x, {}])({})",
                self.expression(depth + 1, false),
                self.expression(depth + 1, waits)
            ),
            14 if waits => format!(
                "await (async x => [x, {}])({})",
                self.expression(depth + 1, true),
                self.expression(depth + 1, true)
            ),
            15 if waits => format!(
                "(await parallel([() => {}, async () => {}, () => {{ throw new Error('t') }}]))",
                self.expression(depth + 1, false),
                self.expression(depth + 1, true)
            ),
            16 if waits => {
                format!(
                    "(await parallel([1, 2].map(x => async () => [x, {}])))",
                    self.expression(depth + 1, true)
                )
            }
            17 if waits => format!(
                "(await pipeline([1, 2], async (p, o, i) => [p, i, {}], (p, o) => \
                    agent(`q${{o}}${{p.length}}`)))",
                self.expression(depth + 1, true)
            ),
            18 if waits => format!("(await Promise.all([agent('x'), {}]))", self.expression(depth + 1, true)),
            19 if waits => {
                format!("(await agent('y').then(x => [x, {}]))", self.expression(depth + 1, false))
            }
            20 if waits => format!(
                "(await Promise.reject(new Error('r')).catch(async e => [e.message, {}]).finally(() => \
                    note('fin')))",
                self.expression(depth + 1, true)
            ),
            21 => format!(
                "((x, y = 2, ...z) => x + y + z.length)(...[1], {})",
                self.expression(depth + 1, waits)
            ),
            22 => format!("[1, 2, 3].map(x => x + {})", self.expression(depth + 1, false)),
            23 if waits => "(await new Promise(r => setTimeout(r, 3, 'late')))".to_owned(),
            24 => format!("new Map([['k', {}]]).get('k')", self.expression(depth + 1, waits)),
            _ => format!("typeof ({})", self.expression(depth + 1, waits)),
        }
    }
}
