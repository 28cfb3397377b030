use super::*;

/// Says what is at the `|` of a text: `role path word`.
fn at(text: &str) -> String {
    let offset = text.find('|').expect("a test marks the place");
    let text = text.replacen('|', "", 1);
    let Some(cursor) = Cursor::at(&text, offset) else { return "nothing".to_owned() };
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Item(index) => format!("[{index}]"),
    };
    let path: String = cursor.path.iter().map(step).collect();
    format!("{:?} {path} {}", cursor.role, &text[cursor.word.clone()]).trim_end().to_owned()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(at(text), expected, "{text}");
}

#[test]
fn names_and_values_are_told_from_each_other() {
    check("sp|ec:\n  a: b\n", "Name  spec");
    check("spec:\n  gatew|ayClassName: a\n", "Name .spec gatewayClassName");
    check("spec:\n  gatewayClassName: ab|c # d\n", "Value .spec.gatewayClassName abc");
    check("spec:\n  gatewayClassName: |\n  listeners: []\n", "Value .spec.gatewayClassName");
    check("spec:\n  gatewayClassName:|", "nothing");
    check("spec:\n  gatewayClassName: abc # d|\n", "nothing");
    check("# a|: b", "nothing");
    check("a: x\n---\nb: c|\n---\nd: e\n", "Value .b c");
}

#[test]
fn lists_have_items() {
    let list = "spec:\n  listeners:\n  - name: a\n    port: 80\n  - name: b\n    PLACE\nstatus: x\n";
    let with = |text: &str| list.replace("PLACE", text);
    check(&with("port: 8|1"), "Value .spec.listeners[1].port 81");
    check(&with("|"), "Name .spec.listeners[1]");
    check(&with("proto|"), "Name .spec.listeners[1] proto");
    check(&with("tls:\n      |"), "Either .spec.listeners[1].tls");
    check("a:\n  - - b\n    - |\n", "Either .a[0][1]");
    check("a:\n- |\n", "Either .a[0]");
    check("a:\n- x\n- ht|\n", "Either .a[1] ht");
    check("a:\n- b: c\n-|\n", "Either .a[1]");
}

#[test]
fn an_empty_line_belongs_to_what_its_column_says() {
    let text = "spec:\n  listeners:\n  - name: a\n";
    check(&format!("{text}    |\n"), "Name .spec.listeners[0]");
    check(&format!("{text}  |\n"), "Name .spec");
    check(&format!("{text}|"), "Name");
    check(&format!("{text}        |"), "nothing");
    check("|", "Name");
    check("spec:\n  |", "Either .spec");
    check("a: |\n  text|\n  more\nb: c".replacen('|', "%", 1).replace('%', ">").as_str(), "nothing");
}

#[test]
fn brackets_hold_lists_and_mappings() {
    check("spec: {a: b, listeners: [{name: x, po|rt: 80}]}", "Name .spec.listeners[0] port");
    check("spec: {a: b, listeners: [{name: x, port: 8|0}]}", "Value .spec.listeners[0].port 80");
    check("spec: {listeners: [{name: x}, {|}]}", "Name .spec.listeners[1]");
    check("spec: {listeners: [{name: x}, {name: |", "Value .spec.listeners[1].name");
    check("spec: {listeners: [{name: x, |\nother: y", "Name .spec.listeners[0]");
    check("{kind: Gateway,\n spec: {gate|\n}}", "Name .spec gate");
    check("a: [b, c|]", "Either .a[1] c");
    check("a: {b: 'c, d', e: f|}\ng: h", "Value .a.e f");
    check("- {name: a, value: b|}", "Value [0].value b");
    check("a: [x]\nb: c|", "Value .b c");
    check("a: [\n  {n: x},\n  {n: y|},\n]\nb: c", "Value .a[1].n y");
}

#[test]
fn what_stands_beside_the_cursor_is_known() {
    let text = "kind: Gateway\nmetadata: {name: a, namespace: 'shop'}\nspec:\n  ref:\n    name: |x\n    kind: Secret\n";
    let offset = text.find('|').expect("it is there");
    let cursor = Cursor::at(&text.replacen('|', "", 1), offset).expect("a value is there");
    assert_eq!((cursor.beside("kind"), cursor.beside("group"), cursor.beside("name")), ("Secret", "", "x"));
    assert_eq!(cursor.names().collect::<Vec<_>>(), ["name", "kind"]);
    assert_eq!((cursor.text_at(&[], "kind"), cursor.text_at(&["metadata"], "namespace")), ("Gateway", "shop"));
}

/// Every beginning of a document, with the cursor everywhere, has an answer or none.
#[test]
fn half_written_documents_are_no_trouble() {
    let text = "a: {b: [\"c\", 'd\n- - ]}: {\n  😀: é |\n    x\n---\n...\n%&*!|>: @`\n\t- ,:\r\n? :\n";
    let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
    for &end in &places {
        for &offset in places.iter().filter(|at| **at <= end) {
            if let Some(cursor) = Cursor::at(&text[..end], offset) {
                assert!(text.get(cursor.word.clone()).is_some());
            }
        }
    }
}
