//! Tells Cargo of new files in the folders that are embedded: the macro knows those only that were there.

fn main() {
    println!("cargo::rerun-if-changed=../../templates");
}
