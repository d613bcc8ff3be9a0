use super::row::bare;
use super::*;

fn home(functions: &[&str]) -> bool {
    let mut innermost = Innermost::default();
    functions.iter().for_each(|f| innermost.see(f));
    innermost.is_home
}

#[test]
fn idle_threads_of_a_runtime_are_at_home_and_working_ones_are_not() {
    let compiler =
        ["os::PlatformMonitor::wait", "Monitor::wait", "CompileQueue::get", "CompileBroker::compiler_thread_loop"];
    assert!(home(&compiler));
    assert!(
        home(&["PosixSemaphore::wait", "GangWorker::loop", "GangWorker::run"]),
        "a collector's thread without work"
    );
    // One that waits for the others of its team, in the middle of a collection.
    assert!(!home(&[
        "os::PlatformMonitor::wait",
        "Monitor::wait",
        "TaskTerminator::offer_termination",
        "GangWorker::loop"
    ]));
    assert!(!home(&["os::PlatformEvent::park", "ObjectMonitor::EnterI", "ObjectMonitor::enter"]));
}

#[test]
fn what_belongs_to_a_runtime_is_nobodys_function() {
    let jvm = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";
    let own = [
        (jvm, "JavaThread::run"),
        ("[jit]", "Interpreter"),
        ("[jit]", "_new_instance_Java"),
        ("[jit]", "new_type_array Runtime1 stub"),
        ("[jit]", "java.lang.Object java.util.HashMap.merge(java.lang.Object)"),
        ("[jit]", "java.util.HashMap.merge"),
        ("//anon", "//anon"),
        ("/usr/lib/libpython3.11.so.1.0", "pysleep"),
        ("/usr/bin/python3.11", "_PyObject_MakeTpCall"),
        ("/usr/lib/python3.11/json/encoder.py", "JSONEncoder.encode"),
        ("/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", "scan_once_unicode"),
    ];
    own.iter().for_each(|(module, function)| assert!(is_own(module, function), "{module} {function}"));
    let authors = [
        ("[jit]", "void Register.work(int)"),
        ("[jit]", "Register.work"),
        ("[jit]", "LazyCompile:~answer /srv/app.js:12"),
        ("/srv/app.py", "work"),
        ("/usr/lib/python3.11/site-packages/flask/app.py", "Flask.wsgi_app"),
        ("/srv/python3-tool/bin/tool", "main"),
        ("/usr/bin/pythonista", "main"),
    ];
    authors.iter().for_each(|(module, function)| assert!(!is_own(module, function), "{module} {function}"));
}

#[test]
fn pythons_own_functions_tell_a_lock_from_a_condition() {
    let is_lock = |frames: &[(&str, &str)]| {
        let mut ambiguous = Ambiguous::default();
        frames.iter().for_each(|(module, function)| ambiguous.see(module, function));
        ambiguous.is_lock
    };
    let waits = ("/usr/lib/libpython3.11.so.1.0", "lock_PyThread_acquire_lock");
    let condition = ("/usr/lib/python3.11/threading.py", "Condition.wait");
    let get = ("/usr/lib/python3.11/queue.py", "Queue.get");
    assert_eq!(is_lock(&[waits, condition, get]), Some(false), "a queue that is empty");
    assert_eq!(is_lock(&[waits, ("/usr/lib/python3.8/threading.py", "_wait_for_tstate_lock")]), Some(false));
    assert_eq!(is_lock(&[waits, ("/srv/app.py", "enter")]), Some(true));
    assert_eq!(is_lock(&[waits, get, condition]), Some(true), "the queue's own lock");
    assert_eq!(is_lock(&[waits]), None, "without Python's functions nobody knows");
    assert_eq!(is_lock(&[("/srv/app.py", "enter")]), None);
}

#[test]
fn javas_own_functions_tell_a_lock_from_a_latch() {
    let is_lock = |functions: &[&str]| {
        let mut ambiguous = Ambiguous::default();
        functions.iter().for_each(|function| ambiguous.see("[jit]", function));
        ambiguous.is_lock
    };
    let acquire = "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire";
    let shared = "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquireSharedInterruptibly";
    assert_eq!(is_lock(&[acquire, acquire, "Ledger.enter"]), Some(true));
    assert_eq!(is_lock(&[acquire, shared, "Ledger.enter"]), Some(false));
    assert_eq!(is_lock(&[acquire, "java.util.concurrent.CountDownLatch.await", "Pool.ask"]), Some(false));
    assert_eq!(is_lock(&[acquire, "Interpreter", "Pool.ask"]), Some(false), "nobody knows what is interpreted");
    assert_eq!(is_lock(&["jdk.internal.misc.Unsafe.park", "Pool.ask"]), None);
}

#[test]
fn what_a_virtual_machine_compiled_is_named_by_its_own_means() {
    assert!(naming_of_compiled("beam.smp").contains("+JPperf true"));
    assert_eq!(naming_of_compiled("postgres"), "");
}

#[test]
fn what_waits_by_a_condition_in_pythons_own_code_takes_its_lock() {
    let (python, wait) = ("/usr/bin/python3.11", "pthread_cond_timedwait");
    let nameless = "python3.11+0x67d020";
    assert_eq!(known_as([wait, nameless], python), "take_gil");
    assert_eq!(known_as(["sem_wait", nameless], python), nameless);
    assert_eq!(
        known_as([wait, "pool.so+0x10"], "/srv/pool.so"),
        "pool.so+0x10",
        "an extension has conditions of its own"
    );
    assert_eq!(known_as([wait, "Queue.get"], "/usr/lib/python3.11/queue.py"), "Queue.get");
}

#[test]
fn what_waits_below_the_handler_of_a_table_takes_a_lock_of_its_engine() {
    let (server, wait, writes) = ("/usr/sbin/mariadbd", "pthread_cond_timedwait", "handler::ha_write_row");
    assert_eq!(known_as([wait, "mariadbd+0xd5ad50", "mariadbd+0xd21ef0", writes], server), "lock_wait");
    assert_eq!(
        known_as([wait, "mariadbd+0xd5ad50", "MDL_wait::timed_wait", writes], server),
        writes,
        "it says what for"
    );
    assert_eq!(known_as(["fsync", "mariadbd+0xd21ef0", writes], server), writes);
}

/// What the outermost of functions is known as, of which all but the innermost are of a file.
fn known_as<const N: usize>(functions: [&'static str; N], module: &'static str) -> &'static str {
    let mut known_as = KnownAs::default();
    let file = |function| if waits_for_condition(function) { "/lib/libc.so.6" } else { module };
    functions.into_iter().map(|f| known_as.see(file(f), f, waits_for_condition(f))).last().unwrap()
}

#[test]
fn collections_are_told_from_other_pauses() {
    assert!(collects("VM_GenCollectForAllocation::doit") && collects("VM_G1CollectForAllocation::doit"));
    assert!(collects("G1EvacuateRegionsBaseTask::work"));
    assert!(!collects("VM_ThreadDump::doit") && !collects("VM_GetAllStackTraces::doit"));
    assert!(!collects("UploadTask::work"));
}

#[test]
fn a_name_is_told_from_what_it_returns() {
    assert_eq!(bare("java.lang.Object java.util.HashMap.get(int)"), "java.util.HashMap.get");
    assert_eq!(bare("Register.work"), "Register.work");
    assert_eq!(bare("<T as core::ops::Drop>::drop"), "<T as core::ops::Drop>::drop");
}

#[test]
fn a_lock_is_entered_by_the_innermost_function_alone() {
    let entry = |functions: &[&str]| {
        let mut innermost = Innermost::default();
        functions.iter().for_each(|f| innermost.see(f));
        innermost.is_entry
    };
    assert!(entry(&["os::PlatformEvent::park", "ObjectMonitor::wait", "InstanceKlass::initialize_impl"]));
    // Who initialises the class has the same function farther out.
    assert!(!entry(&["os::PlatformEvent::park", "Table.load", "InstanceKlass::initialize_impl"]));
}

#[test]
fn interpreters_are_told_by_their_files() {
    let languages = [
        ("/usr/sbin/php-fpm8.2", "PHP"),
        ("/usr/lib/apache2/modules/libphp8.2.so", "PHP"),
        ("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2", "Ruby"),
        ("/usr/bin/perl", "Perl"),
        ("/usr/lib/x86_64-linux-gnu/libperl.so.5.36", "Perl"),
        ("/usr/bin/luajit", "Lua"),
        ("/usr/bin/bash", "shell"),
        ("/usr/bin/python3.11", "Python"),
    ];
    languages.iter().for_each(|(module, language)| assert_eq!(interprets(module), Some(*language), "{module}"));
    let others = ["/usr/bin/phpize", "/usr/bin/rubyist", "/usr/lib/jvm/lib/server/libjvm.so", "/usr/bin/perldoc"];
    others.iter().for_each(|module| assert_eq!(interprets(module), None, "{module}"));
    assert!(
        is_interpreted("/srv/app.py", "work") && !is_interpreted("/usr/bin/python3.11", "_PyEval_EvalFrameDefault")
    );
}

#[test]
fn of_some_languages_one_thread_runs_at_a_time() {
    assert!(is_one_at_a_time("/srv/app.py", "price"));
    assert!(is_one_at_a_time("/srv/config.ru", "page"));
    assert!(is_one_at_a_time("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2", "rb_vm_exec"));
    assert!(!is_one_at_a_time("/usr/bin/gzip", "deflate"));
    assert!(!is_one_at_a_time("[jit]", "Main.run"));
}
