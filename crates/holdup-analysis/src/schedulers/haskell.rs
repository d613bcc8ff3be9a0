//! GHC's runtime: its capabilities run the threads of the language.

use super::row::Scheduler;

pub(super) const HASKELL: Scheduler = Scheduler {
    idles: &["yieldCapability"],
    unseen: "Haskell threads that wait for an MVar, for a transaction or for a time do so inside of the program, where the kernel does not see \
             it. Its event log (-l) tells.",
    task: "Haskell thread",
    is_own: |_, function| is_of_library(function),
    is_task: |_, function| is_haskell(function),
    migrates: true,
    lends_threads: true,
    works: "Make {} shorter, or do less in it while it has an MVar: those that wait for one do so inside of the program.",
    waits: &["waitCondition"],
    homes: &["yieldCapability", "waitForWorkerCapability", "waitForReturnCapability", "waitForCapability"],
    design: &["itimer_thread_func", "base:GHC.Event.*"],
    collects: &[
        "GarbageCollect",
        "gcWorkerThread",
        "scavenge_until_all_done",
        "scavenge_loop*",
        "scavenge_block*",
        "waitForGcThreads",
    ],
    collector: "Give each capability more room (+RTS -A64m), let fewer threads collect (-qg, -qn), or allocate less{}.",
    ..Scheduler::NONE
};

/// Whether a function is compiled Haskell: `Main.$wgo_info`, `base:GHC.Base.++_info`.
fn is_haskell(function: &str) -> bool {
    let Some(name) = function.strip_suffix("_info") else { return false };
    let module = name.split_once(':').map_or(name, |(_package, rest)| rest);
    module.starts_with(|c: char| c.is_ascii_uppercase()) && module.contains('.')
}

/// The runtime's own code, and packages that come with the compiler.
fn is_of_library(function: &str) -> bool {
    /// What runs a program, and its threads: below these is Haskell, which leaves no stack.
    const RUNS: [&str; 6] =
        ["hs_main", "rts_evalIO", "rts_evalLazyIO", "rts_evalStableIO", "scheduleWaitThread", "scheduleWorker"];
    function.starts_with("stg_")
        || RUNS.contains(&function)
        || is_haskell(function) && ["ghc-", "containers-", "integer-"].iter().any(|p| function.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_haskell_is_known_by_its_names() {
        assert!(
            ["Main.$w$sgo16_info", "base:GHC.Base.++_info", "app-1.0:Stock.reserve_info"]
                .map(is_haskell)
                .iter()
                .all(|is| *is)
        );
        assert!(!["get_user_info", "Main.loop", "zip_info"].map(is_haskell).iter().any(|is| *is));
        assert!(is_of_library("stg_ap_0_fast") && is_of_library("containers-0.6.4.1:Data.Map.balanceL_info"));
        assert!(is_of_library("scheduleWaitThread") && !is_of_library("Main.$wgo_info") && !is_of_library("schedule"));
    }
}
