//! Containers to the programs that they start, with their arguments.

use std::collections::BTreeMap;

use serde_json::Value;

/// A program as a container starts it.
#[derive(Debug)]
pub(super) struct Line {
    /// The program, by the name of its table; of one that nobody knows, its image.
    pub(super) program: String,
    /// The tag of the image.
    pub(super) tag: String,
    /// The arguments.
    pub(super) arguments: Vec<String>,
}

impl Line {
    /// Returns the program and the version of its image.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.program, self.tag)
    }
}

/// Programs that an image starts by itself: how the image is called, and the name of their table.
const IMAGES: [(&str, &str); 6] = [
    ("epp", "gie-epp"),
    ("bbr", "gie-bbr"),
    ("llm-d-inference-scheduler", "llm-d-epp"),
    ("llm-d-router-endpoint-picker", "llm-d-epp"),
    ("llm-d-routing-sidecar", "llm-d-sidecar"),
    ("llm-d-router-disagg-sidecar", "llm-d-sidecar"),
];

/// Words that end a command in a shell.
const ENDS: [&str; 6] = [";", "&&", "||", "|", "&", "done"];

/// The number of texts inside of each other that may be command lines, as that of `eval`.
const DEPTH: usize = 3;

/// Returns the programs that a container starts.
pub(super) fn of(container: &Value) -> Vec<Line> {
    let (image, tag) = image(container["image"].as_str().unwrap_or_default());
    let words = |field: &str| container[field].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<String> = words("command").chain(words("args")).map(str::to_owned).collect();
    // Dynamo's picker has the image of its frontends, or one of anybody's.
    let variables = container["env"].as_array();
    if variables.into_iter().flatten().any(|it| it["name"] == "DYN_COMPONENT" && it["value"] == "epp") {
        return vec![Line { program: "dynamo-epp".to_owned(), tag, arguments: words }];
    }
    if let Some((_, program)) = IMAGES.iter().find(|(name, _)| *name == image) {
        let is_path = |word: &&String| !word.starts_with('-');
        let arguments = words.iter().skip_while(is_path).cloned().collect();
        return vec![Line { program: (*program).to_owned(), tag, arguments }];
    }
    let found = in_words(&expanded(words, container), DEPTH);
    let line = |(program, arguments)| Line { program, tag: tag.clone(), arguments };
    if found.is_empty() {
        return vec![Line { program: image, tag, arguments: Vec::new() }];
    }
    found.into_iter().map(line).collect()
}

/// Returns the last part of the name of an image, and its tag.
fn image(image: &str) -> (String, String) {
    let last = image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let (name, tag) = last.split_once(':').unwrap_or((last, ""));
    (name.to_owned(), tag.to_owned())
}

/// Returns the words of a shell's script in place of it, its arguments and variables of the container filled in.
fn expanded(words: Vec<String>, container: &Value) -> Vec<String> {
    let is_script = |word: &String| matches!(word.as_str(), "-c" | "-lc" | "-ec");
    let Some(at) = words.iter().position(is_script).filter(|at| words.len() > at + 1) else { return words };
    let rest: Vec<&str> = words[at + 2..].iter().map(String::as_str).filter(|word| *word != "--").collect();
    let mut known: BTreeMap<&str, String> = ["@", "*"].map(|name| (name, rest.join(" "))).into();
    for variable in container["env"].as_array().into_iter().flatten() {
        known.extend(variable["name"].as_str().zip(variable["value"].as_str().map(str::to_owned)));
    }
    let mut script = words[at + 1].clone();
    for (name, value) in known {
        script = script.replace(&format!("${{{name}}}"), &value).replace(&format!("${name}"), &value);
    }
    shell_words(&script)
}

/// Splits a script into words, as a shell does, the ends of commands among them.
fn shell_words(script: &str) -> Vec<String> {
    let lines = script.replace("\\\n", " ").replace('\n', " ;\n").replace(';', " ; ");
    shlex::split(&lines).unwrap_or_else(|| lines.split_whitespace().map(str::to_owned).collect())
}

/// Returns the programs that these words start, with their arguments.
fn in_words(words: &[String], depth: usize) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for at in 0..words.len() {
        if depth > 0 && words[at].contains(char::is_whitespace) && starts_something(&words[at]) {
            found.extend(in_words(&shell_words(&words[at]), depth - 1));
        } else if let Some((program, length)) = program(&words[at..]) {
            let arguments = words[at + length..].iter().take_while(|word| !ENDS.contains(&word.as_str()));
            found.push((program, arguments.cloned().collect()));
        }
    }
    found
}

fn starts_something(text: &str) -> bool {
    ["-m dynamo.", "vllm serve", "vllm launch", "sglang.launch_server"].iter().any(|start| text.contains(start))
}

/// Returns the program that these words begin with, and the number of words that name it.
fn program(words: &[String]) -> Option<(String, usize)> {
    let word = |at: usize| words.get(at).map(String::as_str);
    match (word(0)?, word(1)?, word(2)) {
        ("python3" | "python", "-m", Some("sglang.launch_server")) => Some(("sglang-server".to_owned(), 3)),
        ("python3" | "python", "-m", Some(module)) if module.starts_with("dynamo.") => Some((module.to_owned(), 3)),
        ("vllm", "serve", _) => Some(("vllm-serve".to_owned(), 2)),
        ("vllm", "launch", Some("render")) => Some(("vllm-serve".to_owned(), 3)),
        _ => None,
    }
}
