//! `docs/library.md` holds the whole text of every example.

use std::fs;
use std::path::Path;

#[test]
fn the_page_holds_the_whole_text_of_every_example() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(here.join("../../docs/library.md")).unwrap();
    let mut examples: Vec<_> =
        fs::read_dir(here.join("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    examples.sort();
    assert!(examples.len() >= 4, "{examples:?}");
    for path in examples {
        let text = fs::read_to_string(&path).unwrap();
        let block = format!("```rust\n{text}```\n");
        assert!(page.contains(&block), "docs/library.md does not hold the text of {}", path.display());
    }
}

#[test]
fn the_first_example_is_short() {
    let text = include_str!("../../examples/first_answer.rs");
    assert!(text.lines().count() <= 15, "{} lines", text.lines().count());
}
