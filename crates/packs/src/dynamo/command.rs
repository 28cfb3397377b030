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

    /// Returns the number that one of these flags is set to.
    pub(super) fn number(&self, flags: &[String]) -> Option<u64> {
        let words = self.words();
        let value = |(index, word): (usize, &String)| -> Option<u64> {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let value = flags.iter().any(|flag| flag == name).then_some(value)?;
            value.or_else(|| words.get(index + 1).map(String::as_str))?.parse().ok()
        };
        words.iter().enumerate().find_map(value)
    }

    /// Returns the command as a line of a shell.
    pub(super) fn line(&self) -> String {
        if self.is_shell() {
            return self.script().join(" ");
        }
        self.command.iter().chain(&self.args).map(|word| quote(word)).collect::<Vec<_>>().join(" ")
    }

    /// Replaces it by a script.
    pub(super) fn run(script: String) -> Self {
        Self { command: vec!["/bin/sh".to_owned(), "-c".to_owned()], args: vec![script] }
    }

    /// Puts flags behind the module; `needs_shell` says that a shell must work out what they say.
    ///
    /// Returns nothing where no such module is run.
    pub(super) fn with_flags(&self, module: &str, flags: &str, needs_shell: bool) -> Option<Self> {
        if self.is_shell() {
            let pattern = runs(&regex::escape(module))?;
            let mut all = self.clone();
            let mut texts = all.args.iter_mut().chain(&mut all.command);
            let (text, end) =
                texts.find_map(|text| pattern.find(text).map(|found| found.end()).map(|end| (text, end)))?;
            text.insert_str(end, &format!(" {flags}"));
            return Some(all);
        }
        let words: Vec<&String> = self.command.iter().chain(&self.args).collect();
        let behind = words.windows(2).position(|pair| pair[0] == "-m" && pair[1] == module)? + 2;
        if needs_shell {
            let quoted = |words: &[&String]| words.iter().map(|word| quote(word)).collect::<Vec<_>>();
            let line = [quoted(&words[..behind]), vec![flags.to_owned()], quoted(&words[behind..])].concat();
            return Some(Self::run(format!("exec {}", line.join(" "))));
        }
        let mut all = self.clone();
        let moved = all.command.split_off(behind.min(all.command.len()));
        all.args.splice(0..0, moved);
        let at = behind - all.command.len();
        all.args.splice(at..at, flags.split_whitespace().map(str::to_owned));
        Some(all)
    }

    /// All words, those of scripts too.
    fn words(&self) -> Vec<String> {
        let all = self.command.iter().chain(&self.args);
        all.flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
    }

    fn is_shell(&self) -> bool {
        let program = self.command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
        SHELLS.contains(&program)
    }

    /// Returns the texts that a shell is given to run.
    fn script(&self) -> Vec<&str> {
        let texts = self.command.iter().chain(&self.args).skip(1).map(String::as_str);
        texts.skip_while(|text| text.starts_with('-')).collect()
    }
}

/// A pattern for `python -m MODULE`; the module's own groups begin at 2.
fn runs(module: &str) -> Option<Regex> {
    Regex::new(&format!(r"(^|[\s/;&|(])python[0-9.]*(?:\s+-[^m\s]\S*)*\s+-m\s+{module}\b")).ok()
}

/// Writes a word as a shell reads it.
pub(super) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
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
    fn flags_go_behind_the_module() {
        let flags = "--nnodes 2 --node-rank $(R)";
        let plain = command(&["python3", "-m", "dynamo.sglang"], &["--tp", "8"]);
        let expected =
            command(&["python3", "-m", "dynamo.sglang"], &["--nnodes", "2", "--node-rank", "$(R)", "--tp", "8"]);
        assert_eq!(plain.with_flags("dynamo.sglang", flags, false), Some(expected));
        let split = command(&["python3"], &["-m", "dynamo.sglang", "--tp", "8"]);
        let expected =
            command(&["python3"], &["-m", "dynamo.sglang", "--nnodes", "2", "--node-rank", "$(R)", "--tp", "8"]);
        assert_eq!(split.with_flags("dynamo.sglang", flags, false), Some(expected));
        assert_eq!(plain.with_flags("dynamo.vllm", flags, false), None);
        let script = command(&["sh", "-c"], &["python3 -m dynamo.sglang --tp 8 && echo"]);
        let expected = command(&["sh", "-c"], &["python3 -m dynamo.sglang --nnodes 2 --node-rank $(R) --tp 8 && echo"]);
        assert_eq!(script.with_flags("dynamo.sglang", flags, true), Some(expected));
    }

    #[test]
    fn what_a_shell_works_out_needs_one_and_the_rest_is_quoted() {
        let plain = command(&["python3", "-m", "dynamo.sglang"], &["--json", r#"{"a": "it's"}"#]);
        let line = r#"exec python3 -m dynamo.sglang --rank $((I + 1)) --json '{"a": "it'\''s"}'"#;
        let expected = command(&["/bin/sh", "-c"], &[line]);
        assert_eq!(plain.with_flags("dynamo.sglang", "--rank $((I + 1))", true), Some(expected));
    }

    #[test]
    fn a_number_is_read_in_both_spellings() {
        let flags = ["--tensor-parallel-size".to_owned(), "-tp".to_owned()];
        assert_eq!(command(&["x"], &["--tensor-parallel-size=8"]).number(&flags), Some(8));
        assert_eq!(command(&["sh", "-c"], &["x -tp 4 -y"]).number(&flags), Some(4));
        assert_eq!(command(&["x"], &["-tpx", "4"]).number(&flags), None);
    }
}
