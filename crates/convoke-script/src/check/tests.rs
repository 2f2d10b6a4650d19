//! What the check finds, and that nothing deep brings it down.

use super::*;

const META: &str = "export const meta = {name: 'n', description: 'd'}\n";

fn body(body: &str) -> String {
    format!("{META}{body}")
}

fn problems(source: &str) -> Vec<Problem> {
    match check(source, &Limits::default()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    }
}

/// Every problem as `line:column message`, of which each must contain what is expected, in order.
fn check_problems(source: &str, expected: &[&str]) {
    let told: Vec<String> = problems(source)
        .into_iter()
        .map(|problem| match problem.place {
            Some(place) => format!("{}:{} {}", place.line, place.column, problem.message),
            None => problem.message,
        })
        .collect();
    assert_eq!(told.len(), expected.len(), "{source}\n{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{source}\n{told}\nlacks {expected}");
    }
}

fn meta(literal: &str) -> Meta {
    match check(&format!("export const meta = {literal};"), &Limits::default()) {
        Ok(sound) => sound.meta,
        Err(problems) => panic!("{problems:#?}"),
    }
}

#[track_caller]
fn check_slips(text: &str, expected: &[&str]) {
    let sound = match check(&body(text), &Limits::default()) {
        Ok(sound) => sound,
        Err(problems) => panic!("{text}: {problems:#?}"),
    };
    let told: Vec<String> = sound
        .slips
        .into_iter()
        .map(|slip| format!("{} {}", slip.place.map_or(0, |place| place.column), slip.message))
        .collect();
    assert_eq!(told.len(), expected.len(), "{text}\n{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{text}\n{told}\nlacks {expected}");
    }
}

#[test]
fn names_that_nothing_defines_are_found_with_the_nearest() {
    check_slips(
        "const pages = []\nreturn paegs.length",
        &["8 `paegs` is not defined: the nearest name is `pages`"],
    );
    check_slips("return LIMIT", &["`LIMIT` is not defined: declare it, or pass it in through args"]);
    check_slips("return agnet('x')", &["the nearest name is `agent`"]);
    check_slips("process.exit(1)", &["`process` is not defined: it is not there in a workflow program"]);
    check_slips("count = 1", &["`count` is not defined"]);
    check_slips("return { total }", &["10 `total` is not defined"]);
    // What a program knows may be missing is its own business, and so is what it declares, wherever that is.
    check_slips("return typeof process === 'undefined' ? 1 : process.pid", &[]);
    check_slips("try { fetch('x') } catch { return 1 }", &[]);
    check_slips(
        "function f({ a, ...b }, [c] = []) { return a + b + c + late }\nlet late; for (const d of []) { d }",
        &[],
    );
    check_slips(
        "class A {} ; const { x: y } = new A(); label: for (;;) { break label } ; return [y, undefined, NaN]",
        &[],
    );
}

#[test]
fn options_with_a_slip_are_found_with_the_nearest() {
    let near = |name: &str, near: &str| {
        format!("agent() has no option `{name}` and would ignore it: the nearest is `{near}`")
    };
    check_slips(
        "await agent('x', { schma: {}, lable: 'a' })",
        &[&near("schma", "schema"), &near("lable", "label")],
    );
    check_slips(
        "await agent('x', { agenttype: 'a', 'isolatoin': 'worktree' })",
        &[&near("agenttype", "agentType"), &near("isolatoin", "isolation")],
    );
    check_slips("await verify({ claim: 'x' }, { voter: 3 })", &["verify() has no option `voter`"]);
    // An option that is near no known one is the script's own, and a program's own function takes what it
    // likes.
    check_slips("await agent('x', { _predispatch: 1, adapter: 2, label: 'a', ...args })", &[]);
    check_slips("const agent = (a, b) => b\nreturn agent('x', { schma: 1 })", &[]);
}

#[test]
fn promises_in_the_place_of_functions_are_found() {
    let promise = "parallel() wants functions and is given a promise";
    check_slips(
        "await parallel([agent('a'), () => agent('b'), agent('c').catch(() => null)])",
        &[promise, promise],
    );
    check_slips("await parallel(args.map(x => agent(x)))", &[promise]);
    check_slips("await parallel(args.map(async x => { return agent(x) }))", &[promise]);
    check_slips("await parallel(args.map(x => () => agent(x)))", &[]);
    check_slips("await parallel(args.map(x => make(x)))\nfunction make(x) { return () => agent(x) }", &[]);
    check_slips("const list = args.map(x => () => agent(x)); await parallel([...list, () => sh('ls')])", &[]);
}

#[test]
fn a_sound_source_passes() {
    for source in [
        "",
        "return 1",
        "const x = await agent('x'); return x",
        "for await (const x of []) {}\nreturn",
        "// Date.now()\nconst s = 'Math.random() new Date() eval import()'; const t = `Date.now() ${1}`; /* \
            import('x') */",
        "const d = new Date(0), e = Date.parse('x'), f = Date.UTC(1), g = new Date(...[1]); return \
            Math.max(d, e)",
        "function f(Date) { return Date.now() }",
        "const budget = 1, args = 2, agent = 3",
        "return typeof eval + typeof WebAssembly + (f instanceof Function); function f() {}",
        "const re = /a(?<n>b)/u; label: for (;;) { break label }",
        "class A { #x = 1; static { this.y = 1 } get x() { return this.#x } async *m() { yield 1 } }",
        "const o = {import: 1, export: 2, eval: 3}; o.import; o?.eval",
    ] {
        check_problems(&body(source), &[]);
    }
    check_problems(&format!("#!/usr/bin/env x\n// hello\n/* there */ {META}return 1"), &[]);
    check_problems(&format!("\u{feff}{META}return 1"), &[]);
    check_problems(&META.replace('\n', "\r\n"), &[]);
}

#[test]
fn every_problem_is_told_with_its_place() {
    check_problems(
        &body("const a = Date.now();\nconst b = Math.random() + new Date();\nimport('x')"),
        &["2:11 `Date.now()`", "3:11 `Math.random()`", "3:27 `new Date()`", "4:1 `import()`"],
    );
    let place = problems(&body("const é = 1, b = Date.now();"))[0].place.clone().expect("a place");
    assert_eq!((place.line, place.column, place.text.as_str()), (2, 18, "const é = 1, b = Date.now();"));
}

#[test]
fn what_is_not_deterministic_or_makes_code_from_text_is_found_on_the_tree() {
    for (text, expected) in [
        ("Date.now()", "timestamps"),
        ("Date?.now()", "timestamps"),
        ("Date['now']()", "timestamps"),
        ("globalThis.Date.now()", "timestamps"),
        ("Date()", "timestamps"),
        ("new Date", "timestamps"),
        ("performance.now()", "timestamps"),
        ("Math.random()", "vary by index"),
        ("eval('1')", "`eval`"),
        ("const e = eval", "`eval`"),
        ("new Function('1')", "`Function`"),
        ("Function('1')", "`Function`"),
        ("WebAssembly.compile()", "`WebAssembly`"),
        ("import.meta.url", "`import.meta`"),
        ("const x = `${Date.now()}`", "timestamps"),
        ("export const y = 1", "only `meta`"),
        ("export default 1", "only `meta`"),
        ("import x from 'x'", "`import`"),
    ] {
        let told = problems(&body(text));
        assert!(told.iter().any(|problem| problem.message.contains(expected)), "{text}: {told:#?}");
    }
}

#[test]
fn meta_must_come_first_and_be_a_literal() {
    check_problems("", &["must begin with"]);
    check_problems("const x = 1", &["1:1 the first statement must be"]);
    check_problems(
        "import x from 'x'\nexport const meta = {name: 'n', description: 'd'}",
        &["`import`", "an `import` stands before it"],
    );
    check_problems("export let meta = {name: 'n', description: 'd'}", &["only `meta`", "first statement"]);
    check_problems("export const meta = f()", &["object literal"]);
    check_problems("export const meta = {}", &["needs a `name`", "needs a `description`"]);
    check_problems("export const meta = {name: '', description: 1}", &["`name`", "`description`"]);
    for literal in [
        "a: x",
        "a: f()",
        "...x",
        "[k]: 1",
        "a() {}",
        "get a() { return 1 }",
        "a: `${1}`",
        "a: /x/",
        "a: +1",
        "a: [1,,2]",
        "a: [...[]]",
        "__proto__: null",
        "'constructor': 1",
        "prototype: 1",
        "a: -x",
        "a: 'x' + y",
        "a: 1 + 2",
        "a: 1n",
        "x",
        "a: () => 1",
        "a: 1e999",
        "a: void 0",
        "a: {b: [{c: d}]}",
    ] {
        let told = problems(
            &format!("const d = 1;\nexport const meta = {{name: 'n', description: 'd', {literal}}}")
                .replace("const d = 1;\n", ""),
        );
        assert_eq!(told.len(), 1, "{literal}: {told:#?}");
        assert!(told[0].message.contains("`meta`"), "{literal}: {told:#?}");
    }
}

#[test]
fn meta_is_read_from_the_tree() {
    let read = meta(
        "{'name': `n`, \"description\": 'a' + \"b\" + `c`, whenToUse: 'w', phases: ['A', {title: 'B', detail: 'x', model: 'm'}], title: 't', examples: [-1, 0.5, true, null, {1: 'x'}]}",
    );
    assert_eq!(
        (read.name.as_str(), read.description.as_str(), read.when_to_use.as_deref()),
        ("n", "abc", Some("w"))
    );
    let titles: Vec<&str> = read.phases.iter().map(|phase| phase.title.as_str()).collect();
    assert_eq!(titles, ["A", "B"]);
    assert_eq!((read.phases[1].detail.as_deref(), read.phases[1].model.as_deref()), (Some("x"), Some("m")));
    assert_eq!(meta("{name: '\\u201cq\\u201d', description: 'd'}").name, "“q”");
}

#[test]
fn what_is_merely_odd_in_meta_is_a_warning() {
    let source =
        "export const meta = {name: 'n', description: 'd', whenToUse: 1, phases: [1, {detail: 'x'}, 'A']}";
    let Ok(sound) = check(source, &Limits::default()) else { panic!("it is sound") };
    assert_eq!(sound.warnings.len(), 3, "{:#?}", sound.warnings);
    assert_eq!(sound.meta.phases.len(), 1);
}

#[test]
fn syntax_errors_show_their_line_and_blame_types_only_for_types() {
    for (text, typed) in [
        ("const x: number = 1", true),
        ("function f(a: string) {}", true),
        ("function f(): void {}", true),
        ("interface X { a: string }", true),
        ("type X = string", true),
        ("const y = x as string", true),
        ("const = 1", false),
        ("const x = {a: 1", false),
        ("if (x {", false),
        ("return 1 +", false),
        ("const x = 'abc", false),
    ] {
        let told = problems(&body(text));
        let first = told.first().unwrap_or_else(|| panic!("{text} has a problem"));
        assert!(first.message.starts_with("syntax error"), "{text}: {first:#?}");
        assert_eq!(first.message.contains("plain JavaScript"), typed, "{text}: {first:#?}");
        assert!(
            first.place.as_ref().is_some_and(
                |place| place.line >= 2 && place.text.starts_with(text.lines().next().unwrap_or(""))
            ),
            "{text}: {first:#?}"
        );
    }
}

#[test]
fn what_only_the_engine_refuses_is_told_too() {
    for (text, expected) in [
        ("let a; let a;", 2),
        ("break", 0),
        ("\n\nconst r = /(/", 0),
        ("\nlet x = 1; var x = 2", 3),
        ("return `${", 2),
    ] {
        let told = problems(&body(text));
        assert!(told[0].message.starts_with("syntax error"), "{text}: {told:#?}");
        // Not every error of the engine has a place.
        assert_eq!(told[0].place.as_ref().map_or(0, |place| place.line), expected, "{text}: {told:#?}");
    }
}

#[test]
fn a_source_that_is_too_long_or_holds_a_nul_is_refused() {
    let limits = Limits { source_chars: 60, ..Limits::default() };
    assert!(check(&body("// é"), &limits).is_ok());
    assert!(check(&body("// ééééééééééé"), &limits).is_err());
    check_problems(&body("const x = '\0'"), &["2:12 the source holds a NUL"]);
}

/// Nests a text in an opening and a closing one.
fn nest(n: usize, (open, middle, close): (&str, &str, &str)) -> String {
    format!("{}{middle}{}", open.repeat(n), close.repeat(n))
}

/// What can be nested without end.
const DEEP: [(&str, &str, &str); 57] = [
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("x={a:", "1", "}"),
    ("({a:", "1", "})"),
    ("f(", "1", ")"),
    ("!", "1", ""),
    ("- ", "1", ""),
    ("typeof ", "1", ""),
    ("await ", "1", ""),
    ("a=>", "1", ""),
    ("async a=>", "1", ""),
    ("async()=>await ", "1", ""),
    ("a?b:", "1", ""),
    ("a?", "1", ":b"),
    ("a=", "1", ""),
    ("a**", "1", ""),
    ("`${", "1", "}`"),
    ("{", "", "}"),
    ("if(a){}else ", ";", ""),
    ("if(a)", ";", ""),
    ("for(;;)", ";", ""),
    ("while(a)", ";", ""),
    ("do ", ";", " while(a)"),
    ("function f(){", "", "}"),
    ("(function(){", "", "})"),
    ("(class extends ", "a", "{})"),
    ("(class{m(){", "", "}})"),
    ("(class{static{", "", "}})"),
    ("new ", "a", ""),
    ("[a,b]=[", "a", "]"),
    ("({a}={a:", "a", "})"),
    ("(a=", "1", ")=>1"),
    ("a[", "1", "]"),
    ("try{", "", "}finally{}"),
    ("try{}catch{", "", "}"),
    ("switch(a){case 1:", "", "}"),
    ("[...", "a", "]"),
    ("a??(", "1", ")"),
    ("a,(", "1", ")"),
    ("x`${", "1", "}`"),
    ("yield ", "1", ""),
    ("(", "", ""),
    ("[", "", ""),
    ("{", "", ""),
    ("`${", "", ""),
    (")", "", ""),
    ("/*", "", ""),
    ("<", "", ""),
    ("a:", ";", ""),
    ("let ", "", ""),
    ("async ", "", ""),
    ("export ", "", ""),
    ("=>", "", ""),
    ("\"", "", ""),
    ("/(", "", ""),
    ("@a ", "", ""),
    ("<a>", "", "</a>"),
];

#[test]
fn deep_sources_of_every_kind_never_overflow() {
    for deep in DEEP {
        assert!(check(&body(&nest(100_000, deep)), &unlimited()).is_err(), "{deep:?} was let through");
    }
    let regex = format!("x = /{}/", nest(100_000, ("(", "", ")")));
    let pattern = format!("var {}=1", nest(100_000, ("[", "a", "]")));
    for text in [regex, pattern] {
        assert!(check(&body(&text), &unlimited()).is_err(), "{} was let through", &text[..20]);
    }
}

#[test]
fn deep_sources_behind_an_error_never_overflow() {
    for deep in DEEP {
        // As deep as the second parser is ever let go, because the first one has stopped before.
        let n = UNSEEN_MARKS / marks(&nest(1, deep)).max(1) - 1;
        for n in [n, 100_000] {
            assert!(check(&body(&format!("let let;\n{}", nest(n, deep))), &unlimited()).is_err(), "{deep:?}");
        }
        let n = n.min(100_000);
        assert!(
            check(
                &format!("export const meta = {{name: 'n', description: {}}}", nest(n, deep)),
                &unlimited()
            )
            .is_err(),
            "{deep:?}"
        );
    }
}

#[test]
fn long_chains_are_no_depth() {
    let n = 100_000;
    let long = [
        nest(n, ("a+", "1", "")),
        format!("a{}", ".b".repeat(n)),
        format!("a{}", "()".repeat(n)),
        nest(n, ("a&&", "1", "")),
        nest(n, ("a??", "1", "")),
        nest(n, ("a,", "1", "")),
        format!("a{}", "?.b".repeat(n)),
        format!("a{}", "[0]".repeat(n)),
        format!("a{}", "``".repeat(n)),
        nest(n, ("a in ", "a", "")),
        nest(n, ("a<", "b", "")),
        nest(n, ("a;", "", "")),
        format!("a{}", ".then(async x => await x)".repeat(20_000)),
    ];
    for text in &long {
        assert!(check(&body(text), &unlimited()).is_ok(), "{} was refused", &text[..20]);
    }
    let joined = format!("export const meta = {{name: 'n', description: {}'x'}}", "'x'+".repeat(n));
    assert!(check(&joined, &unlimited()).is_ok());
}

fn unlimited() -> Limits {
    Limits { source_chars: usize::MAX, ..Limits::default() }
}

#[test]
fn names_and_titles_are_one_line_and_a_name_is_short() {
    let source =
        |name: &str, more: &str| format!("export const meta = {{name: '{name}', description: 'd'{more}}}");
    check_problems(&source(&"é".repeat(100), ""), &[]);
    check_problems(&source("n", ", phases: ['A', {title: 'B', detail: 'x\\ny'}]"), &[]);
    check_problems("export const meta = {name: 'n', description: `two\nlines`}", &[]);
    for name in [
        &"é".repeat(101),
        "a\\nb",
        "a\\rb",
        "a\\tb",
        "a\\u2028b",
        "a\\x1b[2Jb",
        "a\\x00b",
        "a\\u0085b",
        "a\\u202eb",
    ] {
        check_problems(
            &source(name, ""),
            &["1:21 `name` in `meta` must be one line of at most 100 characters"],
        );
    }
    check_problems(
        &source("a\\nb", ", phases: ['one', 'a\\nb', {title: 'c\\x07'}]"),
        &["`name` in `meta`", "the title of phase 2", "the title of phase 3"],
    );
}

#[test]
fn a_source_that_does_not_fit_into_memory_is_told_as_that() {
    let source = body(
        &"const a = [1, 2, 3].map((x) => `${x}`).join();\n".repeat(200).replace("const a", "globalThis.a"),
    );
    for heap_bytes in [64 << 10, 100 << 10, 200 << 10] {
        let told = check(&source, &Limits { heap_bytes, ..Limits::default() }).err().unwrap_or_default();
        assert_eq!(told.len(), 1, "{heap_bytes}: {told:#?}");
        assert!(told[0].message.contains("bytes of memory"), "{heap_bytes}: {told:#?}");
    }
}
