//! `quantity("512Mi")`: amounts as Kubernetes writes them, as numbers that can be compared.

use std::sync::{Arc, LazyLock};

use cel::common::types::{CelDouble, CelInt, CelString};
use cel::{Env, ExecutionError};

use crate::quantity::Quantity;

/// The name of the function.
pub(super) const NAME: &str = "quantity";

/// The functions that every rule can use: CEL's own, and ours.
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
    let quantity = Quantity::parse(text.inner());
    let error =
        || ExecutionError::function_error(NAME, format!("{:?} is no quantity, such as 2, 500m or 1Gi", text.inner()));
    quantity.map(|quantity| CelDouble::from(quantity.number())).ok_or_else(error)
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
