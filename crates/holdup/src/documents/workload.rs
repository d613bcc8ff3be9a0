//! What `holdup load list SCRIPT --json` prints.

use holdup_load::script::{FunctionInfo, ParamInfo};
use serde::Serialize;

/// What a workload offers.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Workload {
    /// Its functions.
    #[serde(serialize_with = "names")]
    #[schemars(with = "Vec<String>")]
    pub functions: Vec<FunctionInfo>,
    /// Its parameters.
    pub params: Vec<ParamInfo>,
}

fn names<S: serde::Serializer>(functions: &[FunctionInfo], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(functions.iter().map(|function| &function.name))
}
