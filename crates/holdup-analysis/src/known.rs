//! Locks, and answers, that people know by a name.

/// A lock that people know by name, or an answer that a thread waits for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// What it is called, as the object of a sentence: `the dynamic loader's lock`.
    pub(crate) name: &'static str,
    /// What to do about it; `{}` is the function that takes it.
    pub(crate) advice: &'static str,
    /// Whether a process has one of it, or several that are as good as one.
    pub(crate) is_single: bool,
    /// What it has to do with who runs.
    pub(crate) runs: Runs,
    pub(crate) place: Place,
    /// Whether a library has it for its callers, whose work is done under it.
    pub(crate) is_for_callers: bool,
    /// The functions that take it.
    pub(crate) functions: &'static [&'static str],
    /// What it is where one of their functions is farther out on the stack.
    pub(crate) within: &'static [Known],
}

impl Known {
    /// One of the kernel's.
    pub(crate) const fn of_kernel(
        name: &'static str,
        advice: &'static str,
        functions: &'static [&'static str],
    ) -> Known {
        Known { is_single: false, place: Place::Kernel, ..Known::of_runtime(name, advice, functions) }
    }

    /// An answer to what the thread asked.
    pub(crate) const fn of_answer(
        name: &'static str,
        advice: &'static str,
        functions: &'static [&'static str],
    ) -> Known {
        Known { place: Place::Answer, ..Known::of_kernel(name, advice, functions) }
    }

    /// One of a program or a language's runtime, of which a process has one.
    pub(crate) const fn of_runtime(
        name: &'static str,
        advice: &'static str,
        functions: &'static [&'static str],
    ) -> Known {
        Known {
            name,
            advice,
            is_single: true,
            runs: Runs::Any,
            place: Place::Runtime,
            is_for_callers: false,
            functions,
            within: &[],
        }
    }

    /// That of a language of which one thread of a process runs at a time.
    pub(crate) const fn of_language(name: &'static str, functions: &'static [&'static str]) -> Known {
        const ADVICE: &str = "Only one thread runs the language at a time: spread {} over processes, or do it in native code that lets the lock go.";
        Known { runs: Runs::One, ..Known::of_runtime(name, ADVICE, functions) }
    }

    /// What it is more precisely, as a function farther out tells.
    pub(crate) fn within(&self, function: &str) -> Option<&'static Known> {
        self.within.iter().find(|known| known.functions.contains(&function))
    }

    /// What to do about it in the function of the program that takes it.
    pub(crate) fn advice(&self, function: &str) -> String {
        self.advice.replace("{}", function)
    }
}

/// What a lock has to do with the threads that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// Nothing: some run that have it, some that have not.
    Any,
    /// Who has it runs the language, and nobody else of its process does.
    One,
    /// It is no lock, but that all threads of the process stop: whoever still runs keeps the others waiting.
    None,
}

/// Where such a function stands on the stack of a waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the kernel, next to what makes a thread wait.
    Kernel,
    /// Among the functions of the C library or the loader, before anything of the application.
    Library,
    /// In a program or a language's runtime, which it belongs to alone: whatever the thread waits with, it is for the lock.
    Runtime,
    /// In the kernel or among the functions of the C library: it is no lock, but the answer to what the thread itself asked.
    Answer,
}
