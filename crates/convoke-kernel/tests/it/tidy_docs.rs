//! House rules for the pages: how wide their lines are, that every link leads somewhere, and that the README
//! is short and leads to every page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::tidy::{code, is_test_file, no_complaints, root};

const WIDEST_LINE: usize = 100;
const MOST_WORDS_OF_THE_README: usize = 1_000;

/// Every Markdown file of the tree: its path from the root, and its text.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    let mut dirs = vec![root()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // What is built is not ours, and neither is what tools keep in hidden directories.
            if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
                dirs.push(path);
            } else if path.extension().is_some_and(|ext| ext == "md") {
                let text = fs::read_to_string(&path).unwrap();
                pages.insert(path.strip_prefix(root()).unwrap().to_owned(), text);
            }
        }
    }
    assert!(pages.len() > 30, "{} pages", pages.len());
    pages
}

/// The lines of a page outside of code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fence = None;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let marks: String = line.trim_start().chars().take_while(|c| *c == '`').collect();
        match fence {
            None if marks.len() >= 3 => fence = Some(marks.len()),
            None => lines.push((number + 1, line)),
            Some(open) if marks.len() >= open && line.trim().len() == marks.len() => fence = None,
            Some(_) => {}
        }
    }
    lines
}

/// Lines that are too wide. Code blocks and rows of tables cannot be broken, and neither can a single long
/// word such as a link.
fn wide_lines(text: &str) -> Vec<usize> {
    let is_wide = |line: &str| {
        let words = line
            .trim_start_matches(|c: char| c.is_whitespace() || "*-".contains(c))
            .split_whitespace()
            .count();
        line.chars().count() > WIDEST_LINE && !line.trim_start().starts_with('|') && words > 1
    };
    prose(text).into_iter().filter(|(_, line)| is_wide(line)).map(|(number, _)| number).collect()
}

/// The targets of the links of a page. What stands between backticks is no link.
fn targets(text: &str) -> Vec<String> {
    let lines: Vec<&str> = prose(text).into_iter().map(|(_, line)| line).collect();
    let plain: String = lines.join("\n").split('`').step_by(2).collect::<Vec<_>>().join("`");
    let inline =
        plain.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '\n']).next()).map(str::to_owned);
    let defined = plain
        .lines()
        .filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
        .map(|(_, to)| to.to_owned());
    inline.chain(defined).collect()
}

/// The anchors of a page, as GitHub makes them from its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase();
        let times = seen.entry(slug.clone()).or_insert(0);
        anchors.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    anchors
}

/// A path without `.` and `..`; `None` if it leads out of the tree.
fn within(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir if clean.pop() => {}
            _ => return None,
        }
    }
    Some(clean)
}

fn is_relative(target: &str) -> bool {
    !["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme))
}

/// Where a link of a page leads, and the anchor that it names.
fn resolve(page: &Path, target: &str) -> (Option<PathBuf>, Option<String>) {
    let (file, anchor) =
        target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor.to_owned())));
    let path =
        if file.is_empty() { Some(page.to_owned()) } else { within(&page.parent().unwrap().join(file)) };
    (path, anchor)
}

/// What is wrong with a link of a page.
fn broken(pages: &BTreeMap<PathBuf, String>, page: &Path, target: &str) -> Option<&'static str> {
    let (path, anchor) = resolve(page, target);
    let Some(path) = path.filter(|path| root().join(path).exists()) else {
        return Some("there is no such file");
    };
    let anchor = anchor?;
    let is_there = pages.get(&path).is_some_and(|text| anchors(text).contains(&anchor));
    (!is_there).then_some("there is no such heading")
}

#[test]
fn lines_of_pages_are_at_most_100_columns_wide() {
    let too_wide = |(page, text): (&PathBuf, &String)| {
        let lines = wide_lines(text);
        lines
            .into_iter()
            .map(|line| format!("{}:{line}: wider than {WIDEST_LINE}", page.display()))
            .collect::<Vec<_>>()
    };
    no_complaints(pages().iter().flat_map(too_wide).collect());
}

/// The pages that a newcomer reads first: what does not fit into a row of a table is a list there.
#[test]
fn rows_of_tables_on_the_first_pages_are_at_most_100_columns_wide() {
    let pages = pages();
    let mut complaints = Vec::new();
    for page in ["README.md", "ARCHITECTURE.md"] {
        let rows: Vec<(usize, &str)> =
            prose(&pages[Path::new(page)]).into_iter().filter(|(_, line)| line.starts_with('|')).collect();
        assert!(rows.len() > 15, "{page} has {} rows", rows.len());
        let wide = rows.iter().filter(|(_, row)| row.chars().count() > WIDEST_LINE);
        complaints.extend(wide.map(|(number, _)| format!("{page}:{number}: wider than {WIDEST_LINE}")));
    }
    no_complaints(complaints);
}

#[test]
fn every_relative_link_leads_to_a_file_and_to_a_heading_that_exist() {
    let pages = pages();
    let mut complaints = Vec::new();
    let mut links = 0;
    for (page, text) in &pages {
        for target in targets(text).into_iter().filter(|target| is_relative(target)) {
            links += 1;
            complaints.extend(
                broken(&pages, page, &target).map(|why| format!("{}: ({target}): {why}", page.display())),
            );
        }
    }
    assert!(links > 100, "{links} links");
    no_complaints(complaints);
}

/// Help, errors and comments send people to pages by their path from the root.
#[test]
fn every_page_that_is_named_by_its_path_exists() {
    let mut files: Vec<(PathBuf, String)> = pages().into_iter().collect();
    let mut dirs = vec![root().join("crates"), root().join("scripts")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if is_test_file(&path) {
                // Tests make up paths of their own.
            } else if let Ok(text) = fs::read_to_string(&path) {
                files.push((path.strip_prefix(root()).unwrap().to_owned(), text));
            }
        }
    }
    let mut complaints = Vec::new();
    let mut named = 0;
    for (path, text) in files.iter().filter(|(path, _)| !path.ends_with("CHANGELOG.md")) {
        // Unit tests make up paths too.
        for rest in code(text).split("docs/").skip(1) {
            let name: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "/._-".contains(*c)).collect();
            let Some(name) = name.trim_end_matches('.').strip_suffix(".md") else { continue };
            named += 1;
            let page = format!("docs/{name}.md");
            let is_made_up = MADE_UP.contains(&page.as_str());
            if !is_made_up && !root().join(&page).exists() {
                complaints.push(format!("{}: {page} does not exist", path.display()));
            }
        }
    }
    assert!(named > 20, "{named} names");
    no_complaints(complaints);
}

/// Pages of other people's projects, in examples.
const MADE_UP: &[&str] = &["docs/new.md", "docs/api.md"];

#[test]
fn the_readme_is_short_and_leads_to_every_page() {
    let pages = pages();
    let readme = Path::new("README.md");
    let words = pages[readme].split_whitespace().count();
    assert!(words <= MOST_WORDS_OF_THE_README, "{words} words");
    let links_of = |page: &Path| -> BTreeSet<PathBuf> {
        targets(&pages[page])
            .iter()
            .filter(|to| is_relative(to))
            .filter_map(|to| resolve(page, to).0)
            .collect()
    };
    let direct = links_of(readme);
    let mut reached = BTreeSet::from([readme.to_owned()]);
    let mut left: Vec<PathBuf> = direct.iter().cloned().collect();
    while let Some(page) = left.pop() {
        if pages.contains_key(&page) && reached.insert(page.clone()) {
            left.extend(links_of(&page));
        }
    }
    let mut complaints = Vec::new();
    for page in pages.keys().filter(|page| page.starts_with("docs") || page.components().count() == 1) {
        // The records of decisions are listed by their own page.
        if !reached.contains(page)
            || !page.starts_with("docs/internals/decisions") && *page != readme && !direct.contains(page)
        {
            complaints.push(format!("the README does not lead to {}", page.display()));
        }
    }
    no_complaints(complaints);
}

/// The files and folders that the map names in the section of a crate: the crate, and how the path ends.
fn named_in_the_map(map: &str) -> Vec<(&str, &str)> {
    let sections = map.split("\n### `").skip(1).filter_map(|section| section.split_once('`'));
    sections
        .flat_map(|(name, text)| {
            let text = text.split("\n## ").next().unwrap_or_default();
            let words = text.split('`').skip(1).step_by(2);
            words.filter(|word| word.ends_with(".rs") || word.ends_with('/')).map(move |word| (name, word))
        })
        .collect()
}

/// Every path below a folder, from that folder.
fn paths_below(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        dirs.extend(entries.iter().filter(|path| path.is_dir()).cloned());
        paths.extend(entries);
    }
    paths
}

#[test]
fn the_files_that_the_map_names_are_in_their_crates() {
    let sample = "# A\n`x.rs`\n### `one` does\n`a.rs`, `b/`, `Word`\n### `two`\n`c/d.rs`\n## B\n`e.rs`\n";
    assert_eq!(named_in_the_map(sample), [("one", "a.rs"), ("one", "b/"), ("two", "c/d.rs")]);
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let named = named_in_the_map(&map);
    assert!(named.len() > 100, "{} names", named.len());
    let mut complaints = Vec::new();
    for (name, file) in named {
        let of_another = root().join("crates").join(file).exists();
        if !of_another && !paths_below(&root().join("crates").join(name)).iter().any(|p| p.ends_with(file)) {
            complaints.push(format!("{name} has no {file}"));
        }
    }
    no_complaints(complaints);
}

#[test]
fn wide_lines_links_and_anchors_are_read_off_a_page() {
    let long = "word ".repeat(21);
    let link = format!("[x](https://example.org/{})", "y".repeat(100));
    let page = format!("{long}\n| {long} |\n```\n{long}\n```\n* {link}\nsee {link}\n");
    assert_eq!(wide_lines(&page), [1, 7]);

    let page = "[a](b.md) `[c](d.md)` ![e](f.svg)\n```\n[g](h.md)\n```\n[two\nlines](i.md#j)\n[k]: l.md\n";
    assert_eq!(targets(page), ["b.md", "f.svg", "i.md#j", "l.md"]);

    let page = "# A `--flag`, and: more\n## Twice\n## Twice\n```\n# none\n```\n#no heading\n";
    let expected = ["a---flag-and-more", "twice", "twice-1"];
    assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), expected);

    let pages = BTreeMap::from([(PathBuf::from("README.md"), "# Title\n".to_owned())]);
    let check = |target: &str, expected: Option<&str>| {
        assert_eq!(broken(&pages, Path::new("docs/a.md"), target), expected, "{target}");
    };
    check("../README.md", None);
    check("../README.md#title", None);
    check("../README.md#other", Some("there is no such heading"));
    check("../GONE.md", Some("there is no such file"));
    check("../../README.md", Some("there is no such file"));
}
