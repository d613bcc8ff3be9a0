//! OpenMP, by GCC's and LLVM's libraries.

use super::row::Scheduler;

pub(super) const OPENMP: Scheduler = Scheduler {
    task: "loop",
    // The compiler's name for the body of a parallel region.
    is_task: |_, function| function.contains("._omp_fn.") || function.contains(".omp_outlined"),
    works: "Spread the iterations of {} evenly: schedule(dynamic) or schedule(guided) with a small chunk, or collapse(2). The \
            others are at the barrier.",
    ..Scheduler::NONE
};
