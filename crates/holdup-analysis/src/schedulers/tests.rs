use super::*;

fn parked(functions: &[&str]) -> bool {
    let mut parked = Parked::default();
    functions.iter().for_each(|f| parked.see(f));
    parked.is_parked
}

#[test]
fn threads_without_a_task_are_parked() {
    let idle: &[&[&str]] = &[
        &["runtime.futex.abi0", "runtime.futexsleep", "runtime.notesleep", "runtime.mPark", "runtime.stopm"],
        &["runtime.usleep.abi0", "runtime.sysmon", "runtime.mstart1"],
        &["internal/runtime/syscall.EpollWait", "runtime.netpoll", "runtime.findRunnable", "runtime.schedule"],
        &["ethr_event_twait", "beam.smp+0x73ee0", "erts_schedule", "beam.smp+0x699a0"],
        &["uv_cond_wait", "worker"],
        &["uv_cond_wait", "libuv.so.1.0.0+0x9f10"],
        &["uv_cond_wait", "node::(anonymous namespace)::PlatformWorkerThread"],
        &["uv__sem_wait", "uv_sem_wait", "node::inspector::(anonymous namespace)::StartIoThreadMain"],
        &[
            "std::sys::pal::unix::futex::futex_wait",
            "<std::sys::sync::condvar::futex::Condvar>::wait_optional_timeout",
            "rayon_core::sleep::Sleep::sleep",
            "rayon_core::registry::WorkerThread::wait_until_cold",
            "rayon_core::registry::main_loop",
        ],
        &[
            "std::sync::poison::condvar::Condvar::wait",
            "tokio::runtime::park::Inner::park",
            "tokio::runtime::park::CachedParkThread::block_on",
        ],
        &[
            "<mio::poll::Poll>::poll",
            "<tokio::runtime::io::driver::Driver>::turn",
            "tokio::runtime::scheduler::multi_thread::park::Parker::park",
            "<tokio::runtime::scheduler::multi_thread::worker::Context>::park_internal",
            "<tokio::runtime::scheduler::multi_thread::worker::Context>::run",
        ],
    ];
    idle.iter().for_each(|stack| assert!(parked(stack), "{stack:?}"));
}

#[test]
fn threads_in_the_middle_of_a_task_are_not() {
    let busy: &[&[&str]] = &[
        // A lock of Go's runtime, and a stop of the world.
        &["runtime.usleep.abi0", "runtime.osyield", "runtime.lock2"],
        &["runtime.futex.abi0", "runtime.futexsleep", "runtime.lock2", "runtime.stopm"],
        &["runtime.notetsleep", "runtime.stopTheWorldWithSema"],
        &["ethr_event_wait", "beam.smp+0x73ee0", "ethr_rwmutex_rlock", "erts_schedule"],
        // Somebody's own function of that name.
        &["worker"],
        &["std::sync::condvar::Condvar::wait", "worker"],
        &["uv_cond_wait", "v8::internal::FutexEmulation::WaitSync<int>"],
        // A job that waits for the other half of a join.
        &["rayon_core::sleep::Sleep::sleep", "rayon_core::registry::WorkerThread::wait_until_cold", "app::fold"],
        &["std::thread::functions::sleep", "app::report::{{closure}}", "tokio::runtime::task::LocalNotified<S>::run"],
    ];
    busy.iter().for_each(|stack| assert!(!parked(stack), "{stack:?}"));
}

#[test]
fn only_threads_that_keep_house_are_idle_whoever_wakes_them() {
    let by_design = |functions: &[&str]| {
        let mut parked = Parked::default();
        functions.iter().for_each(|f| parked.see(f));
        parked.is_by_design
    };
    assert!(by_design(&["runtime.usleep.abi0", "runtime.runqgrab", "runtime.runqsteal"]));
    assert!(by_design(&["runtime.usleep.abi0", "runtime.sysmon"]) && by_design(&["uv_cond_wait", "worker"]));
    // A goroutine that is readied could have run earlier.
    assert!(!by_design(&["runtime.futex.abi0", "runtime.mPark", "runtime.stopm"]));
}

#[test]
fn gos_library_is_told_from_its_programs() {
    let own = [
        "runtime.futex.abi0",
        "runtime.clone.abi0",
        "crypto/internal/fips140/sha256.(*Digest).checkSum",
        "sync.(*Mutex).lockSlow",
        "net/http.(*conn).serve",
        "encoding/json.Marshal",
        "runtime.recv.goready.func1",
        "sort.Slice",
        "slices.SortFunc[go.shape.[]main.row]",
        "sync.(*Map).Load",
    ];
    own.iter().for_each(|f| assert!(is_own("/srv/app", f), "{f}"));
    let authors = [
        "main.price",
        "main.(*registry).add",
        "github.com/x/log.Print",
        "example.org/net/http.Serve",
        "index.part.0",
        "time.constprop.0",
        "log.cold",
        "hash",
        "sort.isra.0.cold",
        "path.0",
        "go.uber.org/zap.(*Logger).Info",
        "main.Sum[net/http.Header]",
        "go.",
        "",
        "runtime",
    ];
    authors.iter().for_each(|f| assert!(!is_own("/srv/app", f), "{f}"));
}

#[test]
fn nodes_own_functions_are_not_what_it_brings_for_others() {
    for own in [
        "Builtins_InterpreterEntryTrampoline",
        "v8::internal::Execution::Call",
        "uv_cond_signal",
        "node::Start",
        "worker",
    ] {
        assert!(is_own("/usr/bin/node", own), "{own}");
    }
    for other in ["sha512_block_data_order_avx2", "PKCS5_PBKDF2_HMAC", "deflate"] {
        assert!(!is_own("/usr/bin/node", other), "{other}");
    }
    assert!(!is_own("/srv/pool", "worker") && !is_own("[jit]", "buildReport"));
    assert!(is_library_source("node:internal/timers") && is_library_source("/srv/node_modules/express/lib/router.js"));
    assert!(!is_library_source("/srv/app.js"));
}

#[test]
fn the_inner_task_counts() {
    let task = |functions: &[&'static str]| functions.iter().find_map(|f| of_task("", f)).map(|s| s.task);
    assert_eq!(task(&["main.price", "main.consume", "runtime.goexit.abi0"]), Some("goroutine"));
    let job = ["PKCS5_PBKDF2_HMAC", "node::ThreadPoolWork::ScheduleWork()::{lambda(uv_work_s*)#1}::_FUN", "worker"];
    assert_eq!(job.into_iter().find_map(|f| of_task("/usr/bin/node", f)).map(|s| s.task), Some("job"));
    assert_eq!(task(&["Builtins_JSEntry", "uv_run"]), Some("callback"));
    // BIND and others have libuv's loop, too.
    assert_eq!(task(&["ns__client_request", "uv_run", "isc__trampoline_run"]), None);
    // Workers of tokio begin in its pool for blocking calls: only what they run for tasks is one.
    let blocking = ["app::resize", "tokio::runtime::task::raw::poll", "tokio::runtime::blocking::pool::Inner::run"];
    assert_eq!(task(&blocking), None);
    assert_eq!(task(&["app::report", "tokio::runtime::task::LocalNotified<S>::run", blocking[2]]), Some("task"));
    assert_eq!(task(&["multiply._omp_fn.0", "start_thread"]), Some("loop"));
}

#[test]
fn wakers_tell_what_goroutines_wait_for() {
    let by = |functions: &[&'static str]| woken_for(functions.iter().copied()).map(|w| w.by);
    let wake = [
        "runtime.futex.abi0",
        "runtime.futexwakeup",
        "runtime.notewakeup",
        "runtime.startm",
        "runtime.wakep",
        "runtime.ready",
    ];
    let with = |last: &'static str| by(&[&wake[..], &[last, "runtime.systemstack.abi0"]].concat());
    assert_eq!(with("runtime.recv.goready.func1"), Some(CHANNELS));
    assert_eq!(with("runtime.readyWithTime.goready.func1"), Some("locks and wait groups of package sync"));
    assert_eq!(by(&["runtime.wakep", "runtime.newproc.func1"]), Some("the start of goroutines"));
    assert_eq!(by(&wake), None);
}

const CHANNELS: &str = "channel operations";

#[test]
fn patterns_know_how_languages_write_a_name() {
    use super::row::any;
    assert!(any(&["a::B::c"], "<a::B>::c") && any(&["a::B*"], "<a::B>::c") && !any(&["a::B"], "<a::B>::c"));
    assert!(any(&["runtime.futex"], "runtime.futex.abi0") && !any(&["runtime.futex"], "runtime.futexsleep"));
    assert!(!any(&["a::B::c"], "<a::B as T>::c") && !any(&["x*"], "") && any(&["<a::*"], "<a::B as T>::c"));
}

#[test]
fn a_task_belongs_to_the_thread_that_runs_it() {
    let task =
        |functions: &[(&str, &str)]| functions.iter().find_map(|(module, f)| of_task(module, f)).map(|s| s.works);
    let node = "/usr/bin/node";
    let pool = task(&[(node, "uv__fs_work"), (node, "worker"), ("libc.so.6", "start_thread")]);
    let synchronous =
        task(&[(node, "uv__fs_work"), (node, "uv_fs_read"), ("[jit]", "load"), (node, "node::SpinEventLoop")]);
    assert_eq!((pool, synchronous), (Some(node::POOL.works), Some(node::EVENT_LOOP.works)));
    assert_eq!(task(&[("/srv/app", "worker")]), None, "somebody's own");
    let events = "/usr/lib/python3.11/asyncio/events.py";
    assert_eq!(task(&[("/srv/app.py", "read"), (events, "Handle._run")]), Some(asyncio::ASYNCIO.works));
    assert_eq!(task(&[("/srv/app.py", "read"), (events, "Handle._run_once")]), None);
    assert_eq!(task(&[("/srv/events.py", "_run")]), None);
    let netty = |inner: &'static str| task(&[("[jit]", "shop.Handler.find"), ("[jit]", inner)]);
    assert_eq!(netty("io.netty.channel.nio.NioEventLoop.processSelectedKeys"), Some(netty::NETTY.works));
    assert_eq!(netty("io.netty.util.concurrent.DefaultEventExecutor.run"), None, "an executor of its own");
}

#[test]
fn functions_of_erlang_are_told_from_those_of_its_libraries() {
    for own in [
        "$gen_server:loop/7",
        "$lists:foldl/3",
        "$'Elixir.Enum':reduce_range/5",
        "$'Elixir.Task.Supervised':invoke_mfa/2",
    ] {
        assert!(is_own("[jit]", own), "{own}");
    }
    for of_program in ["$'Elixir.Slow':handle_call/3", "$shop:order/2", "Caches.fill"] {
        assert!(!is_own("[jit]", of_program), "{of_program}");
    }
}

#[test]
fn what_begins_like_a_compilers_suffix_is_none() {
    assert!(is_own("app", "slices.partitionOrdered[go.shape.int]") && is_own("app", "sort.isrange"));
    assert!(!is_own("app", "index.part.0") && !is_own("app", "index.isra.3") && !is_own("app", "sort.cold"));
}

#[test]
fn code_of_erlang_without_names_is_known_by_its_memory() {
    let of = |module| of_task(module, "code compiled at run time").map_or("", |scheduler| scheduler.nameless);
    assert_eq!(of("memfd:vmem (deleted)"), "Erlang without names");
    assert_eq!(of("/memfd:vmem (deleted)"), "Erlang without names");
    assert_eq!(of("memfd:libffi (deleted)"), "");
}

#[test]
fn a_greenlet_runs_below_the_hub_and_its_loop_does_not() {
    let task = |function| of_task("/site-packages/gevent/libev/corecext.so", function).map(|s| s.task);
    assert_eq!(task("gevent_run_callbacks"), Some("greenlet"));
    assert_eq!(task("ev_run"), None);
}
