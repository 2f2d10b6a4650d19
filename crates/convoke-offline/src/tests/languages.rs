//! The rules of each language on small texts: which lines are found.

use super::harness::Tree;

const TODOS: &str = "TODO, FIXME, XXX, HACK";
const ERRORS: &str = "Unhandled errors";
const LONG: &str = "Functions of more than 80 lines";

/// Checks which lines of one file a task finds in a section.
fn check(task: &str, section: &str, file: &str, text: &str, expected: &[&str]) {
    let tree = Tree::new(&[(file, text)]);
    let played = tree.play(task);
    let places: Vec<String> =
        played.places(section).iter().map(|place| place.rsplit_once(':').unwrap().1.to_owned()).collect();
    assert_eq!(places, expected, "{file}:\n{}", played.report());
    tree.check_evidence(played.report());
}

fn todos(file: &str, text: &str, expected: &[&str]) {
    check("find TODOs", TODOS, file, text, expected);
}

fn errors(file: &str, text: &str, expected: &[&str]) {
    check("find unhandled errors", ERRORS, file, text, expected);
}

fn long(file: &str, text: &str, expected: &[&str]) {
    check("which functions are too long?", LONG, file, text, expected);
}

#[test]
fn todos_count_in_comments_alone() {
    todos(
        "a.c",
        "char *s = \"// TODO\";\nint x; // TODO\n/* a\n * FIXME\n */ char c = '\"'; // XXX\n",
        &["2", "4", "5"],
    );
    todos("a.cpp", "auto s = R\"(\n// TODO raw\n)\"; // TODO\nint n = 1'000; // TODO\n", &["3", "4"]);
    todos("a.go", "s := `\n// TODO raw\n` // TODO\nt := \"\\\"// TODO\"\n", &["3"]);
    todos(
        "a.js",
        "const r = /[\"'`]/; // TODO\nconst t = `\n// TODO\n${`x`} // TODO\n`;\nlet u = 'http://TODO';\n",
        &["1"],
    );
    todos("a.java", "String s = \"\"\"\n // TODO text\n \"\"\"; // TODO\n", &["3"]);
    todos(
        "a.py",
        "s = '''\n# TODO doc\n''' # TODO\nt = '# TODO' \"\\\"# TODO\"\nTODO = 1\n# todo small TODOS\n",
        &["3"],
    );
    let shell =
        "#!/bin/sh\nset -e\ncat <<EOF\n# TODO here\nEOF\necho \"# TODO\n# TODO\" # TODO\necho ${x#TODO} $#\n";
    todos("a.sh", shell, &["7"]);
    todos(
        "a.rs",
        "fn f<'a>(x: &'a str) -> char { '\\'' } // TODO\n/* /* */ TODO */\nlet s = b\"// TODO\";\n",
        &["1", "2"],
    );
    todos("crlf.rs", "// TODO one\r\nlet x = 1;\r\n", &["1"]);
}

#[test]
fn unhandled_errors_of_each_language() {
    let python = "try:\n    f()\nexcept:\n    raise\ntry:\n    f()\nexcept Exception as e:\n    pass\n\
                  try:\n    f()\nexcept Exception:\n    pass  # on purpose\ntry:\n    f()\nexcept \
                  ValueError:\n    pass\n";
    errors("a.py", python, &["3", "7"]);
    let script = "try { f() } catch (e) {}\ntry { f() } catch (e) { /* fine */ }\ntry {\n} catch {\n}\n\
                  p.catch(() => {});\nconst s = \"catch (e) {}\";\ntry {\n} catch (e) {\n  log(e);\n}\n";
    errors("a.ts", script, &["1", "4", "6"]);
    errors("A.java", "void f() {\n  try { g(); } catch (Exception e) {\n  }\n}\n", &["2"]);
    let go = "func f() {\n\t_ = g()\n\t_, _ = h.i(1)\n\tif err != nil {\n\t}\n\tif err != nil \
        {\n\t\treturn\n\t}\n\t_ = x\n}\n";
    errors("a.go", go, &["2", "3", "4"]);
    errors("a_test.go", "func f() {\n\t_ = g()\n}\n", &[]);
    errors("a.sh", "#!/bin/bash\necho set -x\n", &["1"]);
    errors("b.sh", "#!/bin/bash\nset -euo pipefail\n", &[]);
    errors("c.sh", "#!/bin/bash\nset -o errexit\n", &[]);
    errors("sourced.sh", "echo no shebang\n", &[]);
}

#[test]
fn rust_tests_are_told_from_the_rest() {
    let text = "#[cfg(test)]\nmod tests {\n    fn a() { x.unwrap(); }\n}\nfn b() {\n    x.unwrap();\n}\n\
                #[tokio::test]\nasync fn c() {\n    x.unwrap();\n}\n#[cfg(test)]\nuse y;\nfn d() \
                { x.unwrap(); }\n\
                #[cfg(all(test, unix))]\nmod more {\n    fn e() { x.unwrap(); }\n}\n";
    errors("src/a.rs", text, &["6", "14"]);
    errors("src/b.rs", "#![cfg(test)]\nfn a() { x.unwrap(); }\n", &[]);
    errors("tests/c.rs", "fn a() { x.unwrap(); }\n", &[]);
    errors("src/d.rs", "fn a() {\n    x.expect_err(\"no\");\n    x.unwrap_or(1);\n    x.expect(\n}\n", &[]);
}

/// A head, so many lines between, and a foot.
fn body(head: &str, between: &str, lines: usize, foot: &str) -> String {
    format!("{head}\n{}{foot}\n", format!("{between}\n").repeat(lines))
}

#[test]
fn long_functions_are_measured_from_head_to_brace() {
    for (file, head, foot) in [
        ("a.rs", "    pub(crate) fn f<T>(x: [u8; 4]) -> T where T: Fn(u8) -> u8 {", "    }"),
        ("a.go", "func (s *S) F(x interface{}) (struct{}, error) {", "}"),
        ("a.c", "static int f(const char *s) {", "}"),
        ("a.cpp", "Foo::Foo(int a) : a_(a), b_(2) {", "}"),
        ("a.js", "export async function f({ a, b }, c = 1) {", "}"),
        ("b.js", "const f = async (a, b) => {", "};"),
        ("c.ts", "  private handle(x: string): void {", "  }"),
        ("A.java", "  public static int f(List<String> a) throws IOException {", "  }"),
    ] {
        long(file, &body(head, "        x(\"{\"); // }", 79, foot), &["1-81"]);
        long(file, &body(head, "        x(\"{\"); // }", 78, foot), &[]);
    }
    long("a.py", &body("def f(a,\n      b):", "    x = '''\n'''", 40, "# end"), &["1-82"]);
    long("b.py", &body("class C:\n    def f(self):", "        x = 1", 79, "\n    # comment"), &[]);
    long("c.py", &body("class C:\n    def f(self):", "        x = 1", 80, "\n\ny = 2"), &["2-82"]);
}

#[test]
fn what_only_looks_like_a_long_function_is_left_out() {
    long("a.rs", &body("impl Foo {", "    const X: u8 = 1;", 100, "}"), &[]);
    long("b.rs", &body("mod m {\n    fn a();", "    struct A;", 100, "}"), &[]);
    long("a.c", &body("int table[] = {", "  1,", 100, "};"), &[]);
    long(
        "b.c",
        &body("void f(void) {\n#ifdef A\n  if (a) {\n#else\n  if (b) {\n#endif\n  }", "  x();", 100, "}"),
        &[],
    );
    long("a.js", &body("describe('x', () => {", "  it();", 100, "});"), &[]);
    long("A.java", &body("class A {", "  int x;", 100, "}"), &[]);
    long("b.js", &body("const a = (1)\nif (x) {", "  y()", 100, "}"), &[]);
}

#[test]
fn a_function_behind_attributes_and_annotations_begins_at_its_own_line() {
    long("a.rs", &body("#[inline]\n/// Doc.\n#[cfg(unix)]\nfn f() {", "    x();", 100, "}"), &["4-105"]);
    long(
        "A.java",
        &body("  @Override\n  @Get(\"/x\")\n  public void f() {", "    x();", 100, "  }"),
        &["3-104"],
    );
    long("a.cpp", &body("class A {\npublic:\n  void f() const {", "    x();", 100, "  }\n};"), &["3-104"]);
    long("a.js", &body("const a = 1\nfoo()\nfunction f() {", "  x()", 100, "}"), &["3-104"]);
    long("b.go", &body("var x = 1\n\nfunc f() {", "\tx()", 100, "}"), &["3-104"]);
}
