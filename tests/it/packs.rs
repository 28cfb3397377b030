//! Packs in folders: the pages that teach them, followed word for word, and mistakes in them.

mod istio;
mod mistakes;

use std::fs;
use std::path::Path;

use crate::cluster::binaries::in_repository;
use crate::cluster::process::command;

/// A folder to work in, without a config file.
pub(crate) struct Desk(tempfile::TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs the program: its exit code, what it prints, and what it complains about.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        self.run_on(Path::new(""), arguments)
    }

    /// Does the same with the credentials of a cluster.
    pub(crate) fn run_on(&self, kubeconfig: &Path, arguments: &[&str]) -> (i32, String, String) {
        let mut command = command(Path::new(env!("CARGO_BIN_EXE_gatewright")));
        command.args(arguments).current_dir(self.path()).env("HOME", self.path()).env("KUBECONFIG", kubeconfig);
        if kubeconfig.as_os_str().is_empty() {
            command.env_remove("KUBECONFIG");
        }
        let output = command.env_remove("GATEWRIGHT_CONFIG").output().expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }
}

/// One thing that the page asks for.
enum Step {
    /// Write a file.
    File(String, String),
    /// Run a command; what it prints, if the page says so.
    Command(String, String),
}

/// Reads the steps out of a page: files are announced by their name in a line of its own, commands begin with `$`.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut announced = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix('`').and_then(|line| line.strip_suffix("`:")) {
            announced = Some(name.to_owned());
        }
        let Some(language) = line.strip_prefix("```").filter(|language| !language.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match (language, announced.take()) {
            ("console", _) => steps.extend(commands(&block)),
            (_, Some(name)) => steps.push(Step::File(name, block.join("\n") + "\n")),
            (_, None) => {}
        }
    }
    steps
}

fn commands(block: &[&str]) -> Vec<Step> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ gatewright "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => {
                output.push_str(line);
                output.push('\n');
            }
            (None, None) => {}
        }
    }
    commands.into_iter().map(|(command, output)| Step::Command(command, output)).collect()
}

/// Follows a page: writes its files, runs its commands, and holds what they print against what the page says; a line
/// with nothing but `…` stands for any lines. Returns the numbers of files and commands.
#[track_caller]
pub(crate) fn follow(desk: &Desk, page: &str) -> (usize, usize) {
    let page = fs::read_to_string(in_repository(page)).expect("the page is there");
    let (mut files, mut commands) = (0, 0);
    for step in steps(&page) {
        match step {
            Step::File(name, text) => {
                let path = desk.path().join(name);
                fs::create_dir_all(path.parent().expect("it stands in a folder")).expect("it can be written");
                fs::write(path, text).expect("it can be written");
                files += 1;
            }
            Step::Command(line, expected) => {
                let arguments: Vec<&str> = line.split(' ').collect();
                let (code, output, complaints) = desk.run(&arguments);
                assert_eq!((code, complaints.as_str()), (0, ""), "gatewright {line}");
                let is_said = expected.is_empty() || is_like(&output, &expected);
                assert!(is_said, "gatewright {line}:\n{output}\nand not\n{expected}");
                assert!(!output.is_empty(), "gatewright {line}");
                commands += 1;
            }
        }
    }
    (files, commands)
}

/// Tells whether a text is as expected, except for what `…` stands for.
fn is_like(text: &str, expected: &str) -> bool {
    let parts: Vec<&str> = expected.split("…\n").collect();
    let [first, others @ ..] = parts.as_slice() else { return false };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in others {
        let Some(start) = rest.find(part) else { return false };
        rest = &rest[start + part.len()..];
    }
    rest.is_empty() || expected.ends_with("…\n")
}

/// Returns the kinds of what is expected of the case of a pack, in their order.
pub(crate) fn kinds(desk: &Desk, pack: &str) -> Vec<String> {
    let file = desk.path().join(format!("packs/{pack}/cases/a_gateway/objects.yaml"));
    let objects = fs::read_to_string(file).expect("it is written");
    objects.lines().filter_map(|line| line.strip_prefix("kind: ")).map(str::to_owned).collect()
}

#[test]
fn the_pack_of_the_page_is_built_word_for_word() {
    let desk = Desk::new();
    let (files, commands) = follow(&desk, "docs/packs.md");
    assert!(files >= 9 && commands >= 8, "the page has {files} files and {commands} commands");
    assert_eq!(kinds(&desk, "nginx"), ["ServiceAccount", "ConfigMap", "Service", "Service", "Deployment"]);
}

/// Begins a pack, changes one of its files, and returns what `pack lint` and `pack test` say about it.
#[track_caller]
fn with(file: &str, change: impl FnOnce(String) -> String) -> [(i32, String); 2] {
    let desk = Desk::new();
    assert_eq!(desk.run(&["pack", "new", "mine"]).0, 0);
    let path = desk.path().join("mine").join(file);
    fs::write(&path, change(fs::read_to_string(&path).unwrap_or_default())).expect("it can be written");
    ["lint", "test"].map(|command| {
        let (code, output, complaints) = desk.run(&["pack", command, "mine"]);
        (code, output + &complaints)
    })
}

#[test]
fn a_pack_that_was_just_begun_has_no_mistakes() {
    let [lint, test] = with("README.md", |_| "For people.\n".to_owned());
    assert_eq!(lint, (0, "pack mine: nothing is wrong\n".to_owned()));
    assert_eq!(test, (0, "a_gateway: ok\n1 case, 0 different\n".to_owned()));
}

#[test]
fn a_parameter_that_cannot_be_there_is_found_without_a_case() {
    let condition = |text: String| {
        text.replace(
            "    spec:\n",
            "    spec:\n      {%- if params.hostNetwrk %}\n      hostNetwork: true\n      {%- endif %}\n",
        )
    };
    let [lint, test] = with("deployment.yaml", condition);
    assert_eq!(lint.0, 1, "{}", lint.1);
    assert!(lint.1.contains("mine/deployment.yaml:14: the schema of the parameters has no hostNetwrk"), "{}", lint.1);
    assert_eq!(test.0, 0, "the condition is silently false: {}", test.1);
}

#[test]
fn a_mistake_in_a_template_says_file_line_expression_and_scope() {
    let [_, test] = with("deployment.yaml", |text| text.replace("params.image", "params.imgae"));
    assert_eq!(test.0, 1);
    let says = "deployment.yaml:16:36: the value is not there";
    assert!(test.1.contains(says), "{}", test.1);
    for part in ["in `image: {{ params.imgae | json }}`", "in scope are gateway, name, namespace, params"] {
        assert!(test.1.contains(part), "{part}: {}", test.1);
    }
}

#[test]
fn files_that_do_not_fit_are_said_one_by_one() {
    let check = |file: &str, text: &str, expected: &str| {
        let [lint, _] = with(file, |_| text.to_owned());
        assert!(lint.1.contains(expected), "{file}: {}", lint.1);
    };
    check("defaults.yaml", "{replicas: two}", "mine/defaults.yaml:1: replicas");
    check("more.yaml", "a: 1", "mine/more.yaml: pack.yaml does not name this file");
    check("deployment.yaml", "{{ name | jsno }}", "jsno");
    check("service.yaml", "{{ name }", "service.yaml");
    check("pack.yaml", "name: mine\ntemplate: []", "unknown field `template`");
    check("pack.yaml", "a: [", "cannot read \"pack.yaml\", line 1");
    check("parameters.schema.yaml", "{type: object, properties: {a: {pattern: '('}}}", "is not a regular expression");
}

#[test]
fn a_pack_is_begun_once_and_by_a_name() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["pack", "new", "mine"]).0, 0);
    for (arguments, expected) in [
        (&["pack", "new", "mine"][..], "mine is there already"),
        (&["pack", "new", "Mine!"], "is no name of a pack"),
        (&["pack", "new", "more", "--parameters", "Kind"], "a kind is written Kind.group"),
        (&["pack", "test", "."], "there is no pack.yaml in ."),
        (&["pack", "test", "mine", "b_gateway"], "there is no case \"b_gateway\""),
        (&["--packs", "nowhere", "check", "mine"], "nowhere"),
    ] {
        let (code, _, complaints) = desk.run(arguments);
        assert!(code == 64 && complaints.contains(expected), "{arguments:?}: {code} {complaints}");
    }
}

#[test]
fn a_folder_replaces_a_file_of_a_built_in_pack() {
    let desk = Desk::new();
    let folder = desk.path().join("packs/kgateway");
    fs::create_dir_all(&folder).expect("it can be written");
    let text = fs::read_to_string(in_repository("templates/kgateway/serviceaccount.yaml")).expect("it is there");
    fs::write(folder.join("serviceaccount.yaml"), text + "imagePullSecrets: [{name: mirror}]\n")
        .expect("it can be written");
    let specs = in_repository("tests/golden/a_gateway_without_parameters/in");
    let render = |more: &[&str]| {
        let arguments: Vec<&str> = more.iter().copied().chain(["render", path(&specs)]).collect();
        let (code, output, complaints) = desk.run(&arguments);
        assert_eq!((code, complaints.as_str()), (0, ""));
        output
    };
    let (usual, replaced) = (render(&[]), render(&["--packs", "packs"]));
    assert!(!usual.contains("mirror") && replaced.contains("imagePullSecrets:\n- name: mirror"), "{replaced}");
    assert_eq!(usual.lines().count() + 2, replaced.lines().count());
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}
