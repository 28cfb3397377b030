//! Printing an error together with its causes.

use std::error::Error;
use std::fmt;

/// Displays an error and each of its causes, separated by `: `.
///
/// Errors of this project never repeat their cause in their own text, so this adapter is the one place
/// where a chain becomes a line. It is used at the edge (the end of `main`) and in log fields.
#[derive(Debug)]
pub struct Chain<'a>(pub &'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // Libraries below us do repeat their cause; saying it twice helps nobody.
            if !said.ends_with(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read {0:?}")]
    struct Outer(&'static str, #[source] io::Error);

    #[test]
    fn a_chain_names_every_cause_once() {
        let inner = io::Error::new(io::ErrorKind::NotFound, "no such file");
        assert_eq!(Chain(&Outer("a.yaml", inner)).to_string(), "cannot read \"a.yaml\": no such file");
    }
}
