//! The command of a container: which module of Dynamo it runs, what its flags say, and what is put into it.

use regex::Regex;
use serde_json::Value;

use super::model::{Fields, list, set_list};

/// `command` and `args` of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) command: Vec<String>,
    pub(super) args: Vec<String>,
}

const SHELLS: [&str; 3] = ["sh", "bash", "dash"];

impl Command {
    pub(super) fn of(container: &Fields) -> Self {
        let texts = |field: &str| -> Vec<String> {
            let items = list(container.get(field)).into_iter();
            items.map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
        };
        Self { command: texts("command"), args: texts("args") }
    }

    /// Writes it into a container.
    pub(super) fn put(self, container: &mut Fields) {
        for (field, words) in [("command", self.command), ("args", self.args)] {
            set_list(container, field, words.into_iter().map(Value::from).collect());
        }
    }

    /// Returns the module of Dynamo that is run as `python… -m dynamo.NAME`, without `dynamo.`.
    pub(super) fn module(&self) -> Option<String> {
        let line = self.words().join(" ");
        let found = runs(r"dynamo\.([A-Za-z0-9_]+)")?.captures(&line)?.get(2)?;
        Some(found.as_str().to_owned())
    }

    /// Returns the number that one of these flags is set to, as the operator reads it: in the arguments, and as a word of its
    /// own.
    pub(super) fn number(&self, flags: &[String]) -> Option<u64> {
        let words: Vec<&str> = self.args.iter().flat_map(|text| text.split_whitespace()).collect();
        let is_flag = |word: &str| flags.iter().any(|flag| flag == word);
        words.windows(2).filter(|pair| is_flag(pair[0])).find_map(|pair| pair[1].parse().ok())
    }

    /// Tells whether one of these flags stands there.
    pub(super) fn has(&self, flags: &[String]) -> bool {
        self.words().iter().any(|word| flags.contains(word))
    }

    /// Returns all words as a shell reads them, each quoted where that is needed.
    pub(super) fn quoted(&self) -> String {
        self.command.iter().chain(&self.args).map(|word| quote(word)).collect::<Vec<_>>().join(" ")
    }

    /// Returns what one of these flags is set to.
    pub(super) fn value(&self, flags: &[String]) -> Option<String> {
        self.values(flags).into_iter().next()
    }

    fn values(&self, flags: &[String]) -> Vec<String> {
        let words = self.words();
        let value = |(index, word): (usize, &String)| -> Option<String> {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let value = flags.iter().any(|flag| flag == name).then_some(value)?;
            value.or_else(|| words.get(index + 1).map(String::as_str)).map(str::to_owned)
        };
        words.iter().enumerate().filter_map(value).collect()
    }

    /// Returns the command as a line of a shell.
    pub(super) fn line(&self) -> String {
        if self.is_shell() {
            return self.script().join(" ");
        }
        self.quoted()
    }

    /// Replaces it by a script.
    pub(super) fn run(script: String) -> Self {
        Self::shell("/bin/sh", script)
    }

    fn shell(shell: &str, script: String) -> Self {
        Self { command: vec![shell.to_owned(), "-c".to_owned()], args: vec![script] }
    }

    /// Adds flags where the operator adds them; `needs_shell` says that a shell must work out what they say.
    ///
    /// A command of Python has them at its end. In a script they stand behind the last word of the command that names the
    /// module's engine, which is the module itself or the value of a flag. Returns nothing where no such module is run.
    pub(super) fn with_flags(&self, module: &str, flags: &str, needs_shell: bool) -> Option<Self> {
        let mut all = self.clone();
        if !self.is_python() {
            let engine = module.rsplit('.').next().unwrap_or(module);
            let text = all.args.iter_mut().chain(&mut all.command).find(|text| has_place(text, engine))?;
            *text = inserted(text, module, engine, flags)?;
            return Some(all);
        }
        if needs_shell {
            return Some(Self::shell("sh", format!("exec {} {flags}", self.line())));
        }
        all.args.extend(flags.split_whitespace().map(str::to_owned));
        Some(all)
    }

    /// All words, those of scripts too.
    fn words(&self) -> Vec<String> {
        let all = self.command.iter().chain(&self.args);
        all.flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
    }

    fn program(&self) -> &str {
        self.command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default()
    }

    fn is_shell(&self) -> bool {
        SHELLS.contains(&self.program())
    }

    /// Tells whether it runs Python without a shell between.
    fn is_python(&self) -> bool {
        let version = self.program().strip_prefix("python");
        version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
    }

    /// Returns the texts that a shell is given to run.
    fn script(&self) -> Vec<&str> {
        let texts = self.command.iter().chain(&self.args).skip(1).map(String::as_str);
        texts.skip_while(|text| text.starts_with('-')).collect()
    }
}

/// A pattern for `python -m MODULE`; the module's own groups begin at 2.
fn runs(module: &str) -> Option<Regex> {
    Regex::new(&format!(r"(^|[\s/;&|(])python[0-9.]*\s+(?:[^|&;]*\s)?-m\s+{module}\b")).ok()
}

/// A pattern for a command of Python in a script, up to the last word of it in which an engine is named.
fn place(engine: &str) -> Option<Regex> {
    Regex::new(&format!(r"python[0-9.]*\s+[^|&;]*{}[^|&;\s]*", regex::escape(engine))).ok()
}

fn has_place(text: &str, engine: &str) -> bool {
    place(engine).is_some_and(|place| place.is_match(text))
}

/// Puts flags into every command of a script that runs a module.
fn inserted(text: &str, module: &str, engine: &str, flags: &str) -> Option<String> {
    let (place, module) = (place(engine)?, runs(&regex::escape(module))?);
    let (mut all, mut done) = (String::new(), 0);
    for found in place.find_iter(text) {
        // Between quotes they would become a part of a text.
        let length = if is_open(found.as_str()) {
            module.find(found.as_str()).map(|module| module.end())
        } else {
            Some(found.len())
        };
        let Some(behind) = length.map(|length| found.start() + length) else { continue };
        all.push_str(&text[done..behind]);
        all.push(' ');
        all.push_str(flags);
        done = behind;
    }
    all.push_str(&text[done..]);
    (done > 0).then_some(all)
}

/// Tells whether a quote is open at the end of a text of a shell.
fn is_open(text: &str) -> bool {
    let (mut open, mut is_escaped) = (None, false);
    for c in text.chars() {
        match (open, c) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '"' | '\'') => open = Some(c),
            (Some(quote), c) if quote == c => open = None,
            _ => {}
        }
    }
    open.is_some()
}

/// Writes a word as a shell reads it, in the way of the operator: between double quotes, if it must be quoted at all.
pub(super) fn quote(word: &str) -> String {
    const SPECIAL: &str = " \t\n'\"\\{}[]$`!;|&()<>";
    if !word.is_empty() && !word.contains(|c| SPECIAL.contains(c)) {
        return word.to_owned();
    }
    let escaped: String =
        word.chars().flat_map(|c| matches!(c, '"' | '\\' | '$' | '`').then_some('\\').into_iter().chain([c])).collect();
    format!("\"{escaped}\"")
}

/// Writes a text of a shell so that it can stand between the single quotes of another one.
pub(super) fn nested(text: &str) -> String {
    text.replace('\'', r#"'"'"'"#)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn command(command: &[&str], args: &[&str]) -> Command {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        Command { command: texts(command), args: texts(args) }
    }

    #[test]
    fn the_module_is_found_wherever_python_is_called() {
        let module = |it: Command| it.module();
        assert_eq!(module(command(&["python3", "-m", "dynamo.vllm"], &[])).as_deref(), Some("vllm"));
        assert_eq!(
            module(command(&["/opt/bin/python3.12"], &["-u", "-m", "dynamo.sglang"])).as_deref(),
            Some("sglang")
        );
        let script = command(&["/bin/sh", "-c"], &["cd /x && python3 -m dynamo.trtllm --a b"]);
        assert_eq!(script.module().as_deref(), Some("trtllm"));
        assert_eq!(module(command(&["python3", "-m", "planner"], &["dynamo.vllm"])), None);
    }

    #[test]
    fn flags_go_to_the_end_of_a_command_of_python() {
        let flags = "--nnodes 2 --node-rank $(R)";
        let plain = command(&["python3", "-m", "dynamo.sglang"], &["--tp", "8"]);
        let expected =
            command(&["python3", "-m", "dynamo.sglang"], &["--tp", "8", "--nnodes", "2", "--node-rank", "$(R)"]);
        assert_eq!(plain.with_flags("dynamo.sglang", flags, false), Some(expected));
        let split = command(&["/usr/bin/python3.12"], &["-m", "dynamo.sglang", "--tp", "8"]);
        let with_flags = split.with_flags("dynamo.sglang", "--nnodes 2", false);
        let expected = command(&["/usr/bin/python3.12"], &["-m", "dynamo.sglang", "--tp", "8", "--nnodes", "2"]);
        assert_eq!(with_flags, Some(expected));
    }

    #[test]
    fn flags_go_behind_the_last_word_of_a_script_that_names_the_engine() {
        let script = |text: &str| command(&["sh", "-c"], &[text]).with_flags("dynamo.vllm", "--nnodes 2", true);
        let is = |text: &str| Some(command(&["sh", "-c"], &[text]));
        assert_eq!(script("python3 -m dynamo.vllm --tp 8 | tee vllm.log"), {
            is("python3 -m dynamo.vllm --nnodes 2 --tp 8 | tee vllm.log")
        });
        assert_eq!(
            script("exec python3 -m dynamo.vllm --cls vllm.v1.Async --tp 8"),
            is("exec python3 -m dynamo.vllm --cls vllm.v1.Async --nnodes 2 --tp 8")
        );
        let quoted = r#"python3 -m dynamo.vllm --json '{"a": "x.vllm.y", "b": 1}'"#;
        let expected = r#"python3 -m dynamo.vllm --nnodes 2 --json '{"a": "x.vllm.y", "b": 1}'"#;
        assert_eq!(script(quoted), is(expected), "a text is not torn apart");
        assert_eq!(script("python3 -m dynamo.sglang --tp 8"), None);
        let odd = "python3 a.py 'vllm b'; python3 b.py vllm; python3 -X;a -m dynamo.vllm";
        let expected = "python3 a.py 'vllm b'; python3 b.py vllm --nnodes 2; python3 -X;a -m dynamo.vllm";
        assert_eq!(script(odd), is(expected), "each command is looked at alone");
    }

    proptest! {
        /// Whatever stands in a script, flags are added between its words, and nothing of it is lost.
        #[test]
        fn a_script_with_flags_is_the_script_and_flags(words in prop::collection::vec(prop::sample::select(WORDS), 0..16)) {
            let script = words.concat();
            let added = command(&["sh", "-c"], &[&script]).with_flags("dynamo.vllm", "--nnodes 2", true);
            let Some(added) = added else { return Ok(()) };
            prop_assert!(added.args[0].len() > script.len());
            prop_assert_eq!(added.args[0].replace(" --nnodes 2", ""), script);
        }
    }

    /// What scripts are made of that are hard to read.
    const WORDS: &[&str] = &[
        "python3 ",
        "-m ",
        "dynamo.vllm",
        "vllm",
        "-X;a ",
        "a.py ",
        "'",
        "\"",
        "\\",
        ";",
        " | ",
        "&&",
        " ",
        "\n",
        "ü",
        "$(",
        ")",
    ];

    #[test]
    fn what_a_shell_works_out_needs_one_and_the_rest_is_quoted() {
        let plain = command(&["python3", "-m", "dynamo.sglang"], &["--json", r#"{"a": "it's"}"#, "$HOME;"]);
        let line = r#"exec python3 -m dynamo.sglang --json "{\"a\": \"it's\"}" "\$HOME;" --rank $((I + 1))"#;
        let expected = command(&["sh", "-c"], &[line]);
        assert_eq!(plain.with_flags("dynamo.sglang", "--rank $((I + 1))", true), Some(expected));
        assert_eq!(nested("it's"), r#"it'"'"'s"#);
    }

    #[test]
    fn a_number_is_read_as_the_operator_reads_it() {
        let flags = ["--tensor-parallel-size".to_owned()];
        assert_eq!(command(&["x"], &["--tensor-parallel-size", "8"]).number(&flags), Some(8));
        assert_eq!(command(&["sh", "-c"], &["x --tensor-parallel-size 4 -y"]).number(&flags), Some(4));
        assert_eq!(command(&["x"], &["--tensor-parallel-size=8"]).number(&flags), None);
        assert_eq!(command(&["x", "--tensor-parallel-size", "8"], &[]).number(&flags), None);
        assert!(command(&["sh", "-c"], &["x --tensor-parallel-size 4"]).has(&flags));
        assert!(!command(&["x"], &["--tensor-parallel-sizes"]).has(&flags));
    }
}
