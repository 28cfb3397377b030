//! `quantity("512Mi")`: amounts as Kubernetes writes them, as numbers that can be compared.

use std::sync::{Arc, LazyLock};

use cel::common::types::{CelDouble, CelInt, CelString};
use cel::{Env, ExecutionError};

/// The name of the function.
pub(super) const NAME: &str = "quantity";

/// What may stand behind the number, and what it is multiplied by.
const SUFFIXES: [(&str, f64); 16] = [
    ("Ki", 1_024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("", 1.0),
];

/// What every rule can use: CEL's own functions, and ours.
pub(super) static FUNCTIONS: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    let added = [
        cel::add_overload!(env, fn of_text: (CelString) -> Result<CelDouble>, name = "quantity", id = "string_to_quantity"),
        cel::add_overload!(env, fn of_integer: (CelInt) -> CelDouble, name = "quantity", id = "int_to_quantity"),
        cel::add_overload!(env, fn of_number: (CelDouble) -> CelDouble, name = "quantity", id = "double_to_quantity"),
    ];
    debug_assert!(added.iter().all(Result::is_ok), "the standard has no function of this name");
    Arc::new(env)
});

fn of_text(text: &CelString<'_>) -> Result<CelDouble, ExecutionError> {
    let number = parse(text.inner());
    let error =
        || ExecutionError::function_error(NAME, format!("{:?} is no quantity, such as 2, 500m or 1Gi", text.inner()));
    number.map(CelDouble::from).ok_or_else(error)
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far from where that matters")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how CEL calls a function")]
fn of_integer(number: &CelInt) -> CelDouble {
    CelDouble::from(*number.inner() as f64)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how CEL calls a function")]
fn of_number(number: &CelDouble) -> CelDouble {
    CelDouble::from(*number.inner())
}

pub(super) fn parse(text: &str) -> Option<f64> {
    let (number, factor) = SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)))?;
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || ".+-eE".contains(c));
    let number = number.parse::<f64>().ok().filter(|number| is_plain && number.is_finite())?;
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn quantities_are_those_of_kubernetes() {
        for (text, number) in
            [("2", 2.0), ("500m", 0.5), ("1Gi", 1_073_741_824.0), ("1.5k", 1500.0), ("2e3", 2000.0), ("-1", -1.0)]
        {
            assert_eq!(parse(text).map(f64::to_bits), Some(f64::to_bits(number)), "{text}");
        }
        for text in ["", "m", "1GB", "inf", "NaN", "1 Gi", "0x10"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
