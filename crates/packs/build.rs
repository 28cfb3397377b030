//! Tells Cargo of new files in the folders that are embedded: the macro knows those only that were there.

#[expect(clippy::print_stdout, reason = "so a build script speaks to Cargo")]
fn main() {
    println!("cargo::rerun-if-changed=../../templates");
}
