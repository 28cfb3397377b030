//! Lists in the forms `name` and `wide`: the names are what other commands take, and nothing is left out.

use crate::program::Desk;

fn names(desk: &Desk, arguments: &[&str]) -> Vec<String> {
    let run = desk.run(&[arguments, &["-o", "name"]].concat()).exits(0);
    run.out.lines().map(str::to_owned).collect()
}

#[test]
fn names_are_what_other_commands_take() {
    let desk = Desk::quickstart("gatewright.yaml");
    assert_eq!(names(&desk, &["status"]), [""; 0]);
    desk.run(&["sync"]).exits(0);

    let units = names(&desk, &["status"]);
    assert_eq!(units, ["Gateway/infra/edge", "Gateway/infra/internal", "Gateway/shop/storefront"]);
    for unit in &units {
        desk.run(&["plan", "--only", unit]).exits(0).says("no changes");
    }
    let objects = names(&desk, &["inventory", "show"]);
    assert!(objects.contains(&"Deployment/infra/edge".to_owned()), "{objects:?}");
    for object in &objects {
        desk.run(&["explain", object]).exits(0).says(object.rsplit('/').next().expect("it has a name"));
    }
    let clusters = names(&desk, &["clusters"]);
    assert_eq!(clusters, ["rendered"]);
    desk.run(&["plan", "--cluster", &clusters[0]]).exits(0);
    let runs = names(&desk, &["history"]);
    assert_eq!(runs.len(), 1);
    desk.run(&["undo", &runs[0], "--dry-run"]).exits(0).says("prune");
    assert_eq!(names(&desk, &["orphans"]), [""; 0]);
}

/// A round that changes nothing knows them, too.
#[test]
fn the_images_of_a_unit_are_those_of_its_last_round() {
    let desk = Desk::quickstart("gatewright.yaml");
    for _ in 0..2 {
        desk.run(&["sync"]).exits(0);
        let rendered = desk.read_all("rendered");
        let image = |line: &str| Some(line.split_once("image: ")?.1.trim_matches('"').to_owned());
        let image = rendered.lines().find_map(image).expect("pods have an image");
        desk.run(&["status", "-o", "wide"]).exits(0).says(&format!("\n      {image}\n"));
        desk.run(&["status", "--verbose"]).exits(0).says(&image);
        desk.run(&["status", "-o", "json"]).exits(0).says(&format!(r#""images":["{image}"]"#));
        let short = desk.run(&["status"]).exits(0);
        assert!(!short.out.contains(&image), "{}", short.out);
    }
    desk.run(&["status", "-o", "wide", "--summary"]).exits(64).complains("--summary is a form of text");
}

#[test]
fn a_wide_list_of_clusters_leaves_nothing_out() {
    let desk = Desk::quickstart("gatewright.yaml");
    let labels: Vec<String> = (0..9).map(|number| format!("label-{number}: value-{number}")).collect();
    let labelled = format!("rendered:\n    labels: {{{}}}\n", labels.join(", "));
    desk.replace("gatewright.yaml", "rendered:\n", &labelled);
    let narrow = desk.run(&["clusters"]).exits(0);
    assert!(narrow.out.contains(",+") && !narrow.out.contains("label-8=value-8"), "{}", narrow.out);
    let wide = desk.run(&["clusters", "-o", "wide"]).exits(0).says("label-8=value-8").says("IDENTITY");
    assert!(!wide.out.contains(",+"), "{}", wide.out);
}
