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
    design: &["itimer_thread_func", "base_GHCziEventzi*"],
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

/// Whether a function is compiled Haskell: `Main_zdwgo_info`, `base_GHCziBase_zpzp_info`. Other characters than letters are written with a
/// `z`; `zi` is the dot between the parts of a module's name.
fn is_haskell(function: &str) -> bool {
    let Some(name) = function.strip_suffix("_info") else { return false };
    name.starts_with("Main_") || ["zi", "zd", "zm"].iter().any(|code| name.contains(code)) && name.contains('_')
}

/// The runtime's own code, and packages that come with the compiler.
fn is_of_library(function: &str) -> bool {
    function.starts_with("stg_")
        || is_haskell(function) && ["ghczm", "containerszm", "integerzm"].iter().any(|p| function.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_haskell_is_known_by_its_names() {
        assert!(
            ["Main_zdwzdsgo16_info", "base_GHCziBase_zpzp_info", "appzm1zi0_Stock_reserve_info"]
                .map(is_haskell)
                .iter()
                .all(|is| *is)
        );
        assert!(!["get_user_info", "Main_loop", "zip_info"].map(is_haskell).iter().any(|is| *is));
        assert!(is_of_library("stg_ap_0_fast") && is_of_library("containerszm0zi6zi4zi1_DataziMap_balanceL_info"));
        assert!(!is_of_library("Main_zdwgo_info"));
    }
}
