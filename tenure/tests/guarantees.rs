//! GUARANTEES.md, and those of the parts that it names, name a test for every promise; a name that no test
//! has is a promise without one.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap()
}

fn sources(folder: &Path, text: &mut String) {
    sources_but(folder, &[], text);
}

fn sources_but(folder: &Path, skipped: &[PathBuf], text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if skipped.contains(&path) {
            continue;
        }
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            sources_but(&path, skipped, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// When a test runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Always,
    /// It is ignored by who does not ask for it.
    WhenAsked,
}

/// The tests by their names: functions whose attributes, right above them, say that they are tests.
fn tests(code: &str) -> BTreeMap<&str, Runs> {
    let (mut is_test, mut runs) = (false, Runs::Always);
    let mut found = BTreeMap::new();
    for line in code.lines().map(str::trim_start) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if line.starts_with("#[ignore") {
            runs = Runs::WhenAsked;
        } else if let Some((name, _)) = line
            .trim_start_matches("pub ")
            .trim_start_matches("async ")
            .strip_prefix("fn ")
            .and_then(|named| named.split_once('('))
        {
            if is_test {
                found.insert(name, runs);
            }
            (is_test, runs) = (false, Runs::Always);
        } else if !line.starts_with(['#', '/']) {
            (is_test, runs) = (false, Runs::Always);
        }
    }
    found
}

/// The stores, each with the letter of the promises that are about it alone.
const STORES: [(&str, &str); 7] = [
    ("S", "sqlite"),
    ("M", "mongodb"),
    ("R", "redis"),
    ("P", "postgres"),
    ("N", "nats"),
    ("E", "etcd"),
    ("Y", "mysql"),
];

/// Where a test is: those of two stores may have one name, and only one of them is meant.
struct Tests<'a> {
    /// Of everything but the stores.
    shared: BTreeMap<&'a str, Runs>,
    of_stores: Vec<BTreeMap<&'a str, Runs>>,
}

impl Tests<'_> {
    /// When the test of this name runs that a promise with this label may mean: where it is about one store,
    /// none of another.
    fn find(&self, label: &str, name: &str) -> Option<Runs> {
        let is_meant = |place: usize| match STORES.iter().position(|(letter, _)| label.starts_with(letter)) {
            Some(of_label) => place == of_label,
            None => true,
        };
        let mut stores = self.of_stores.iter().enumerate();
        let of_stores = || stores.find_map(|(place, tests)| tests.get(name).filter(|_| is_meant(place)));
        self.shared.get(name).or_else(of_stores).copied()
    }
}

/// The names in the list of the suite that every store passes.
fn cases(list: &str) -> BTreeSet<&str> {
    let lines = list.lines().map(str::trim);
    let is_name = |line: &&str| {
        let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_';
        !line.is_empty() && line.chars().all(fits)
    };
    lines.filter(is_name).collect()
}

/// The laws that the simulator watches.
fn laws(code: &str) -> BTreeSet<&str> {
    let lines = code.lines().map(str::trim);
    let names = lines.filter_map(|line| line.strip_prefix("name: \"")?.strip_suffix("\","));
    names.collect()
}

/// The races that are tried in many orders.
fn scenarios(code: &str) -> BTreeSet<&str> {
    let lines = code.lines();
    let names = lines.filter_map(|line| line.strip_prefix("pub(super) fn ")?.strip_suffix("() {"));
    names.collect()
}

/// The file at the root, whose contents name every promise, and those of the parts, with their paths.
fn guarantees() -> BTreeMap<PathBuf, String> {
    let mut files = Vec::new();
    documents_in(&workspace(), &mut files);
    files.retain(|path| path.ends_with("GUARANTEES.md"));
    let files = files.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path, text)
    });
    files.collect()
}

/// Of all the files.
fn all_promises(files: &BTreeMap<PathBuf, String>) -> Vec<Promise<'_>> {
    let promises: Vec<Promise> = files.values().flat_map(|text| promises(text)).collect();
    assert!(promises.len() > 100, "only {} promises are read", promises.len());
    promises
}

/// A promise of GUARANTEES.md: its heading, and what its list of tests has.
struct Promise<'a> {
    label: &'a str,
    title: &'a str,
    tests: Vec<&'a str>,
}

/// Every heading of the third rank is one; what is not of this form would be read by nobody, and checked by
/// nothing.
fn promises(text: &str) -> Vec<Promise<'_>> {
    let mut promises = Vec::<Promise>::new();
    let mut is_in_tests = false;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            assert!(!is_in_tests, "a list of tests without an end before: {line}");
            let (label, rest) = heading.split_once(" · ").expect(line);
            let anchor = format!(" <a id=\"{}\"></a>", label.to_lowercase());
            let title = rest.strip_suffix(anchor.as_str()).expect(line);
            assert!(is_label(label), "no label: {line}");
            promises.push(Promise {
                label,
                title,
                tests: Vec::new(),
            });
        } else if line == "<details><summary>Tests</summary>" {
            is_in_tests = true;
        } else if line == "</details>" {
            is_in_tests = false;
        } else if is_in_tests && !line.is_empty() {
            let test = line.strip_prefix("- ").expect(line);
            promises
                .last_mut()
                .expect("a promise before its tests")
                .tests
                .push(test);
        }
    }
    promises
}

fn is_label(text: &str) -> bool {
    let number = text.strip_prefix(|letter: char| letter.is_ascii_uppercase());
    number.is_some_and(|number| number.parse::<u8>().is_ok())
}

#[test]
fn every_test_that_a_guarantee_names_exists() {
    let read = |path: &str| {
        let mut code = String::new();
        sources(&workspace().join(path), &mut code);
        code
    };
    let list = |file: &str| std::fs::read_to_string(workspace().join("conformance/src").join(file)).unwrap();
    let (list, wire) = (list("list.rs"), list("wire.rs"));
    let folders = STORES.map(|(_, store)| workspace().join("stores").join(store));
    let (mut shared, of_stores) = (
        String::new(),
        STORES.map(|(_, store)| read(&format!("stores/{store}"))),
    );
    sources_but(&workspace(), &folders, &mut shared);
    let (invariants, races) = (read("sim/src/invariants"), read("tenure/verify/src/scenarios"));
    let (listed, laws, scenarios) = (cases(&list), laws(&invariants), scenarios(&races));
    let tests_of = |code| {
        let mut tests = tests(code);
        // What is asked of the stores behind a proxy becomes a test of each by a macro.
        if code.contains("wire_suite!(") {
            tests.extend(cases(&wire).into_iter().map(|name| (name, Runs::Always)));
        }
        tests
    };
    let tests = Tests {
        shared: tests(&shared),
        of_stores: of_stores.iter().map(|code| tests_of(code.as_str())).collect(),
    };
    assert!(
        listed.len() > 100 && laws.len() > 20,
        "{} cases and {} laws: are they still read?",
        listed.len(),
        laws.len()
    );
    let files = guarantees();
    let mut named = 0;
    for promise in all_promises(&files) {
        let label = promise.label;
        let mut is_tested = false;
        for entry in promise.tests {
            let name = entry.split('`').nth(1).unwrap_or_default();
            let (what, is_known) = match entry {
                // A command prints them.
                _ if entry.starts_with("figures: ") => continue,
                // It is no name: each case of the suite is meant.
                _ if entry.starts_with("every conformance case, ") => continue,
                _ if entry.starts_with("conformance: ") => ("case of the suite", listed.contains(name)),
                _ if entry.starts_with("simulated: ") => ("law of the simulator", laws.contains(name)),
                _ if entry.starts_with("in many orders: ") => ("scenario", scenarios.contains(name)),
                _ => {
                    let runs = tests.find(label, name);
                    let says_when = entry.ends_with(')');
                    assert!(
                        runs != Some(Runs::WhenAsked) || says_when,
                        "{label} of GUARANTEES.md does not say when this ignored test runs: {entry}"
                    );
                    ("test", runs.is_some())
                }
            };
            assert!(
                is_known && entry.matches('`').count() == 2,
                "there is no {what} that {label} of GUARANTEES.md names so: {entry}"
            );
            is_tested = true;
            named += 1;
        }
        assert!(is_tested, "a promise without a test: {label}");
    }
    assert!(named > 800, "only {named} tests are named: are they still read?");
}

/// Who reads the contents alone sees every promise, in its order and its words, and comes to each.
#[test]
fn the_contents_of_the_guarantees_name_every_promise() {
    let files = guarantees();
    let root = workspace().join("GUARANTEES.md");
    let contents: Vec<&str> = files[&root]
        .lines()
        .filter(|line| line.starts_with("- ["))
        .collect();
    let mut lines = 0;
    for (path, text) in &files {
        let file = path.strip_prefix(workspace()).unwrap().to_str().unwrap();
        let link = if *path == root { "" } else { file };
        let promised: Vec<String> = promises(text)
            .iter()
            .map(|Promise { label, title, .. }| {
                format!("- [{label}]({link}#{}) {title}", label.to_lowercase())
            })
            .collect();
        let begins = format!("]({link}#");
        let named: Vec<&str> = contents
            .iter()
            .copied()
            .filter(|line| line.contains(&begins))
            .collect();
        assert_eq!(named, promised, "{file}");
        lines += named.len();
        for line in text.lines().filter(|line| !line.starts_with("- [")) {
            assert!(
                line.chars().count() <= 120,
                "{file}: longer than 120 characters: {line}"
            );
        }
    }
    assert_eq!(
        lines,
        contents.len(),
        "a line of the contents leads to no promise"
    );
    let promises = all_promises(&files);
    let labels: BTreeSet<&str> = promises.iter().map(|promise| promise.label).collect();
    assert_eq!(labels.len(), promises.len(), "a label stands for two promises");
}

#[test]
fn every_link_to_a_guarantee_leads_to_one() {
    let files = guarantees();
    let mut links = 0;
    let mut documents = Vec::new();
    documents_in(&workspace(), &mut documents);
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in text.split("](").skip(1) {
            let Some((path, anchor)) = link.split(')').next().unwrap().split_once('#') else {
                continue;
            };
            let to = match path {
                "" => document.clone(),
                _ => document.parent().unwrap().join(path),
            };
            if path.contains("://") || !to.ends_with("GUARANTEES.md") {
                continue;
            }
            let text = &files[&to.canonicalize().expect(link)];
            let heading = text
                .lines()
                .find(|line| line.starts_with("##") && leads_to(line, anchor));
            assert!(heading.is_some(), "{}: no {path}#{anchor}", document.display());
            links += 1;
        }
    }
    assert!(links > 100, "only {links} links were found");
}

/// Whether a heading is the one that a link names: by its own anchor, or by its words as sites make anchors
/// of them.
fn leads_to(heading: &str, anchor: &str) -> bool {
    let words = heading
        .trim_start_matches(['#', ' '])
        .to_lowercase()
        .replace(' ', "-");
    heading.contains(&format!("<a id=\"{anchor}\"></a>")) || words == anchor
}

fn documents_in(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            documents_in(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_law_of_the_simulator_stands_with_its_guarantee() {
    let mut code = String::new();
    sources(&workspace().join("sim/src/invariants"), &mut code);
    let quoted = |line: &str| line.split('"').nth(1).map(ToOwned::to_owned);
    let names = code
        .lines()
        .filter(|line| line.starts_with("    name: \""))
        .filter_map(quoted);
    let lines = code
        .lines()
        .filter(|line| line.starts_with("    guarantee: \""))
        .filter_map(quoted);
    let laws: Vec<(String, String)> = names.zip(lines).collect();
    assert!(
        laws.len() > 20,
        "only {} laws were found: are they still read?",
        laws.len()
    );
    let files = guarantees();
    let promises = all_promises(&files);
    for (name, label) in laws {
        let named = format!("simulated: `{name}`");
        let promise = promises.iter().find(|promise| promise.label == label);
        assert!(
            promise.is_some_and(|promise| promise.tests.contains(&named.as_str())),
            "the law {name} does not stand with {label} in GUARANTEES.md"
        );
    }
}

/// A crate whose tests are one program names its files in `tests/main.rs`; one that it forgot would be no
/// test.
#[test]
fn every_file_of_tests_is_part_of_its_program() {
    let mut programs = Vec::new();
    mains(&workspace(), &mut programs);
    assert!(programs.len() > 10, "only {} programs were found", programs.len());
    for program in programs {
        let text = std::fs::read_to_string(&program).unwrap();
        for entry in std::fs::read_dir(program.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let is_module = path.join("mod.rs").exists() || path.extension().is_some_and(|it| it == "rs");
            assert!(
                !is_module || stem == "main" || text.lines().any(|line| line == format!("mod {stem};")),
                "{} does not name {stem}",
                program.display()
            );
        }
    }
}

fn mains(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            mains(&path, found);
        } else if path.ends_with("tests/main.rs") {
            found.push(path);
        }
    }
}
