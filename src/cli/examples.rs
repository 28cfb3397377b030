//! Examples of each command, as `--help` and the manual pages show them. A test runs each of them.

use clap::{Command, CommandFactory as _};

use super::Cli;

/// By command: what somebody wants, and what they type.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    ("init", &[("A first config file, in a folder of its own", "gatewright init trial --yes")]),
    (
        "check",
        &[
            ("All specs of a folder", "gatewright check specs"),
            ("The same for the annotations of a pull request", "gatewright check specs --format github"),
        ],
    ),
    ("render", &[("What specs become, without a cluster", "gatewright render specs")]),
    ("config check", &[("Before the daemon reads it", "gatewright config check")]),
    ("config show", &[("All settings that are in force, defaults included", "gatewright config show")]),
    (
        "plan",
        &[
            ("What a round would do, by the config file", "gatewright plan"),
            ("A plan to read, and to carry out as it is", "gatewright plan gateways --out next.plan"),
            ("Specs on the cluster that kubectl talks to, without a config file", "gatewright plan ./specs"),
        ],
    ),
    ("apply", &[("A plan that was read", "gatewright apply next.plan --yes")]),
    (
        "sync",
        &[
            ("One round of all syncs, without a question", "gatewright sync --yes"),
            ("One sync on some clusters", "gatewright sync gateways --cluster 'eu-*' --yes"),
        ],
    ),
    ("diff", &[("What is different on the clusters", "gatewright diff")]),
    (
        "status",
        &[
            ("How all syncs are", "gatewright status"),
            ("One, with images and all that is wrong", "gatewright status gateways -o wide"),
        ],
    ),
    ("tree", &[("From Gateways down to pods", "gatewright tree gateways")]),
    ("events", &[("What Kubernetes says of the objects of a sync", "gatewright events gateways")]),
    ("clusters", &[("Those of a region", "gatewright clusters -l region=eu")]),
    ("clusters forget", &[("One that will not come back", "gatewright clusters forget ap-1")]),
    ("hosts", &[("Who looks after which sync", "gatewright hosts")]),
    ("history", &[("The rounds of a sync that did something", "gatewright history gateways")]),
    ("report list", &[("All reports that are kept", "gatewright report list")]),
    (
        "report show",
        &[
            ("How a sync was seen last", "gatewright report show gateways"),
            ("The last report as a page", "gatewright report show latest -o html"),
        ],
    ),
    ("report diff", &[("What is new since the last report", "gatewright report diff latest")]),
    (
        "explain",
        &[
            (
                "Where a field is from",
                "gatewright explain Deployment/infra/edge spec.replicas --sync gateways --cluster eu-1",
            ),
            ("The same from specs alone", "gatewright explain Deployment/infra/edge spec.replicas -f specs"),
        ],
    ),
    ("defaults", &[("Parameters to begin with", "gatewright defaults kgateway")]),
    (
        "schema",
        &[
            ("The kinds that there are", "gatewright schema"),
            ("One of them", "gatewright schema GatewayParameters"),
            ("All, for the editors of a team", "gatewright schema --all --output-dir schemas"),
        ],
    ),
    ("lsp", &[("What an editor starts", "gatewright lsp specs")]),
    ("adopt", &[("One Gateway of a sync", "gatewright adopt gateways --only Gateway/infra/edge --yes")]),
    ("release", &[("What would be given back", "gatewright release Gateway/infra/edge --dry-run")]),
    (
        "approve",
        &[
            ("What waits", "gatewright approve"),
            ("One thing, by the token that was printed", "gatewright approve k7wm-3xq9-hd2t"),
        ],
    ),
    (
        "rollout status",
        &[
            ("How far changes are", "gatewright rollout status"),
            ("For a program", "gatewright rollout status gateways -o json"),
        ],
    ),
    ("rollout explain", &[("Why each cluster waits", "gatewright rollout explain gateways")]),
    ("rollout pause", &[("During an incident", "gatewright rollout pause gateways --reason 'incident 4711'")]),
    ("rollout resume", &[("After it", "gatewright rollout resume gateways")]),
    ("rollout approve", &[("Let what waits go on", "gatewright rollout approve gateways --yes")]),
    ("rollout abort", &[("What would be taken back", "gatewright rollout abort gateways --dry-run")]),
    (
        "rollback",
        &[
            ("What there is to go back to", "gatewright rollback gateways --list"),
            ("What going back would change", "gatewright rollback gateways --dry-run"),
        ],
    ),
    ("undo", &[("The rounds that can be taken back", "gatewright undo")]),
    ("suspend", &[("For two hours", "gatewright suspend gateways --for 2h --reason 'incident 4711'")]),
    ("resume", &[("Before they are over", "gatewright resume gateways")]),
    ("audit", &[("Who has decided what about a sync", "gatewright audit gateways -n 50")]),
    ("audit verify", &[("That no line was changed", "gatewright audit verify -o json")]),
    ("inventory show", &[("What a sync owns on a cluster", "gatewright inventory show gateways --cluster eu-1")]),
    ("inventory repair", &[("On one cluster", "gatewright inventory repair gateways --cluster eu-1 --yes")]),
    ("inventory claim", &[("From a host that is gone", "gatewright inventory claim gateways --cluster eu-1 --yes")]),
    ("orphans", &[("What no inventory has", "gatewright orphans")]),
    ("rbac", &[("The rights of the daemon, for kubectl apply", "gatewright rbac gateways")]),
    ("import", &[("What is on the cluster that kubectl talks to", "gatewright import imported")]),
    ("pack new", &[("A pack for another data plane", "gatewright pack new nginx")]),
    ("pack lint", &[("Before its templates are tried", "gatewright pack lint nginx")]),
    ("pack test", &[("All its cases", "gatewright pack test nginx")]),
    ("simulate", &[("A small fleet", "gatewright simulate --clusters 10 --gateways 2")]),
    (
        "completions",
        &[(
            "For bash; its completions are read from ~/.local/share/bash-completion/completions",
            "gatewright completions bash",
        )],
    ),
    ("man", &[("For this user", "gatewright man man1")]),
    ("version", &[("This program", "gatewright version")]),
    ("run", &[("As systemd does it", "gatewright run")]),
    ("destroy", &[("All that a sync owns on a cluster", "gatewright destroy gateways --cluster us-1 --yes")]),
];

/// Returns the command line, with the examples in its help.
pub(super) fn command() -> Command {
    with_examples(Cli::command(), "")
}

fn with_examples(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |command| with_examples(command, path.trim_start()))
    });
    match EXAMPLES.iter().find(|(name, _)| *name == path) {
        Some((_, examples)) => command.after_long_help(text(examples)),
        None => command,
    }
}

fn text(examples: &[(&str, &str)]) -> String {
    let mut text = "Examples:\n".to_owned();
    for (wanted, typed) in examples {
        text.extend(["  # ", wanted, "\n  ", typed, "\n"]);
    }
    text.trim_end().to_owned()
}
