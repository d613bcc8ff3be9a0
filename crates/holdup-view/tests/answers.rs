//! Questions of the page over made traces: what they say together, and what they say of single places.

#![allow(missing_docs)]

use holdup_analysis::NoDisassembler;
use holdup_synth::{Shape, Spec, generate};
use holdup_trace::Destination;
use holdup_view::{Cancel, Gallery, Item, Model, Pace, Question};
use serde_json::{Value, json};

const PX: usize = 100;

/// An answer taken apart.
struct Told {
    json: Value,
    bytes: Vec<u8>,
}

impl Told {
    fn of(bytes: Vec<u8>) -> Self {
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        Told { json: serde_json::from_slice(&bytes[4..4 + length]).unwrap(), bytes }
    }

    /// The bytes of a section, and how long each number is.
    fn section(&self, wanted: &str) -> (&[u8], usize) {
        let mut at = (4 + u32::from_le_bytes(self.bytes[..4].try_into().unwrap()) as usize).next_multiple_of(8);
        for section in self.json["sections"].as_array().unwrap() {
            let wide = match section["type"].as_str().unwrap() {
                "u8" => 1,
                "f64" => 8,
                _ => 4,
            };
            let length = section["length"].as_u64().unwrap() as usize * wide;
            if section["name"] == wanted {
                return (&self.bytes[at..at + length], wide);
            }
            at = (at + length).next_multiple_of(8);
        }
        panic!("no section {wanted} in {}", self.json);
    }

    fn f32(&self, wanted: &str) -> Vec<f32> {
        let (bytes, wide) = self.section(wanted);
        bytes.chunks(wide).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    }

    fn sum(&self, wanted: &str) -> f64 {
        self.f32(wanted).iter().map(|&v| f64::from(v)).sum::<f64>()
    }
}

fn ask(model: &Model, question: &Value) -> Told {
    let told = Told::of(model.ask_json(question.to_string().as_bytes(), &Cancel::default()));
    assert!(told.json.get("error").is_none(), "{question}: {}", told.json);
    told
}

fn refused(model: &Model, question: &Value) -> String {
    let told = Told::of(model.ask_json(question.to_string().as_bytes(), &Cancel::default()));
    told.json["error"].as_str().unwrap_or_else(|| panic!("{question} was answered: {}", told.json)).to_owned()
}

fn model(shape: Shape, events: u64) -> Model {
    let spec = Spec { shape, cpus: 8, threads: 60, events, seed: 3, losses: 1 };
    let made = generate(&spec, &Destination::Memory).unwrap();
    Model::open(made.trace, "made", Box::new(NoDisassembler)).unwrap()
}

fn end(model: &Model) -> f64 {
    ask(model, &json!({"ask": "summary"})).json["duration_ns"].as_f64().unwrap()
}

/// What `use` tells over time is what `explain` tells of the whole, for a wide window from the base and for its halves.
#[test]
fn use_over_time_adds_up_to_the_explanation() {
    for shape in [Shape::Lock, Shape::Hub] {
        let model = model(shape, 300_000);
        let end = end(&model);
        let plain = ask(&model, &json!({"ask": "use", "window": [0, end], "px": PX}));
        assert_eq!(plain.json["split"], false);
        let explain = ask(&model, &json!({"ask": "explain"})).json;
        let seconds = |what: &str| explain["cpu_seconds"][what].as_f64().unwrap();
        let halves: Vec<Told> = [[0.0, end / 2.0], [end / 2.0, end]]
            .map(|w| ask(&model, &json!({"ask": "use", "window": w, "px": PX / 2})))
            .into();
        let whole = ask(&model, &json!({"ask": "use", "window": [0, end], "px": PX}));
        assert_eq!(whole.json["split"], true);
        let names: Vec<&str> = whole.json["series"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
        let pixel = end / 1e9 / PX as f64;
        let total = |told: &Told, pick: &dyn Fn(&str) -> bool| {
            names.iter().filter(|n| pick(n)).map(|n| told.sum(n) * pixel).sum::<f64>()
        };
        let all = seconds("total");
        let close = |what: &str, found: f64, wanted: f64| {
            assert!((found - wanted).abs() < 0.01 * all, "{shape:?} {what}: {found} of {wanted}, in all {all}");
        };
        close("all", total(&whole, &|_| true), all);
        close("running", total(&whole, &|n| n == "busy" || n == "spin"), seconds("busy") + seconds("spin"));
        close("without work", total(&whole, &|n| n == "no_work"), seconds("no_work"));
        let held = |n: &str| n.starts_with("held:") || n == "runnable_idle";
        close("held up", total(&whole, &held), seconds("held_up") + seconds("runnable_idle"));
        close("busy, before", plain.sum("busy") * pixel + plain.sum("spin") * pixel, seconds("busy") + seconds("spin"));
        for name in &names {
            let of_halves = halves.iter().map(|h| h.sum(name) * pixel).sum::<f64>();
            close(name, of_halves, whole.sum(name) * pixel);
        }
        // The first finding has most of what is charged, and so it is drawn.
        assert!(whole.sum("held:f1") * pixel > 0.3 * seconds("held_up"), "{shape:?}");
    }
}

/// A window so narrow that it is told from the events themselves agrees with the base.
#[test]
fn narrow_windows_agree_with_wide_ones() {
    let model = model(Shape::Lock, 200_000);
    let end = end(&model);
    ask(&model, &json!({"ask": "explain"}));
    let window = [end * 0.4, end * 0.4 + 60_000.0];
    let narrow = ask(&model, &json!({"ask": "use", "window": window, "px": 4000}));
    let wide = ask(&model, &json!({"ask": "use", "window": window, "px": 2}));
    for name in ["busy", "held:f1", "no_work", "held:rest"] {
        let (a, b) = (narrow.sum(name) / 4000.0, wide.sum(name) / 2.0);
        assert!((a - b).abs() < 0.25, "{name}: {a} and {b} CPUs");
    }
}

#[test]
fn lanes_show_what_threads_do_at_a_place() {
    let model = model(Shape::Lock, 200_000);
    let end = end(&model);
    let rows =
        ask(&model, &json!({"ask": "rows", "lanes": "thread", "open": [], "search": "", "offset": 0, "limit": 10}));
    let program = rows.json["rows"][0]["id"].as_str().unwrap().to_owned();
    let opened = ask(&model, &json!({"ask": "rows", "lanes": "thread", "open": [program], "offset": 0, "limit": 50}));
    let threads: Vec<&str> = (opened.json["rows"].as_array().unwrap().iter())
        .filter(|r| r["kind"] == "thread")
        .map(|r| r["id"].as_str().unwrap())
        .collect();
    let window = [end * 0.5, end * 0.5 + 200_000.0];
    let lanes = ask(&model, &json!({"ask": "lanes", "window": window, "px": 50, "ids": threads}));
    let words = ["nothing", "running", "spinning", "runnable", "lock", "disk", "outside", "sleeping", "idle", "child"];
    let (states, _) = lanes.section("state");
    let (shares, _) = lanes.section("share");
    let mut compared = 0;
    for (row, id) in threads.iter().enumerate() {
        for px in [5, 10, 15, 20, 25, 30, 40] {
            let cell = row * 50 + px;
            // Where the pixel is of one state all through, the place says the same.
            if shares[cell] == 255 && usize::from(states[cell]) < words.len() && states[cell] > 0 {
                let time = window[0] + (px as f64 + 0.5) * 4000.0;
                let at = ask(&model, &json!({"ask": "at", "row": id, "time": time})).json;
                // Spinning is told from samples, which a place has not.
                let said = at["state"].as_str().unwrap();
                assert!(said == words[usize::from(states[cell])] || states[cell] == 2, "{id}: {at}");
                assert!(at["from"].as_f64().unwrap() <= time && time <= at["to"].as_f64().unwrap(), "{at}");
                compared += 1;
            }
        }
    }
    assert!(compared > 5, "{compared}");
    let cpus = ask(&model, &json!({"ask": "lanes", "window": [0, end], "px": 20, "ids": ["c0", "c7"]}));
    assert_eq!(cpus.section("who").0.len(), 2 * 20 * 4);
}

/// From a finding to its wait and the chain, whose numbers are those of the table.
#[test]
fn a_finding_leads_to_its_culprit() {
    let model = model(Shape::Lock, 200_000);
    let explain = ask(&model, &json!({"ask": "explain"})).json;
    let culprit = explain["culprit_rows"][0].as_str().unwrap().to_owned();
    let chain = ask(&model, &json!({"ask": "chain", "finding": "f1"})).json;
    let rows: Vec<&str> = chain["hops"].as_array().unwrap().iter().filter_map(|h| h["row"].as_str()).collect();
    assert!(rows.contains(&culprit.as_str()), "{culprit} is not in {rows:?}");
    assert_eq!(chain["hops"].as_array().unwrap().len(), chain["chain"]["hops"].as_array().unwrap().len());
    let id = chain["chain"]["hops"][0]["wait"]["id"].as_u64().unwrap();
    let again = ask(&model, &json!({"ask": "chain", "wait": id})).json;
    assert_eq!(again["chain"]["hops"], chain["chain"]["hops"]);
    let table = ask(
        &model,
        &json!({"ask": "table", "table": "waits", "show": ["id", "tid", "start"], "where": [format!("id == {id}")]}),
    );
    let row = &table.json["rows"][0];
    assert_eq!(row[1], chain["chain"]["hops"][0]["who"]["tid"]);
    let selected = json!({"ask": "rows", "lanes": "thread", "open": [], "offset": 0, "limit": 500, "selection": {"finding": "f1"}});
    let shown = ask(&model, &selected).json;
    assert!(shown["total"].as_u64().unwrap() > 0);
    let reveal = ask(&model, &json!({"ask": "rows", "open": [], "offset": 0, "limit": 5, "reveal": culprit})).json;
    assert!(reveal["at"].is_u64(), "{reveal}");
}

#[test]
fn tables_are_opened_level_by_level() {
    let model = model(Shape::Lock, 100_000);
    let end = end(&model);
    let by = ["process", "thread"];
    let first =
        ask(&model, &json!({"ask": "table", "table": "waits", "by": by, "show": ["sum:wait", "count"], "tree": true}));
    let top = &first.json["rows"][0];
    let second = json!({"ask": "table", "table": "waits", "by": by, "show": ["sum:wait", "count"], "path": [top[0]]});
    let second = ask(&model, &second).json;
    let sum = |rows: &Value| rows.as_array().unwrap().iter().map(|r| r[1].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(&second["rows"]), top[1].as_u64().unwrap());
    let part =
        ask(&model, &json!({"ask": "table", "table": "waits", "window": [0, end / 10.0], "show": ["start"]})).json;
    assert!(part["total_rows"].as_u64().unwrap() < first.json["matched_rows"].as_u64().unwrap());
    let text = ask(&model, &json!({"ask": "table", "table": "hot-locks", "csv": true})).json;
    assert!(text["csv"].as_str().unwrap().starts_with("process,lock,"));
    assert!(refused(&model, &json!({"ask": "table", "table": "nothing"})).contains("there is no table"));
}

/// Sums that were made once say what going through the rows says, in any window, on any level and with any selection.
#[test]
fn sums_of_tables_say_what_rows_say() {
    let model = model(Shape::Lock, 700_000);
    let end = end(&model);
    let by = ["thread", "kind"];
    let sums = ["sum:wait", "count", "mean:wait", "max:wait", "share:wait"];
    // A percentile cannot be had from sums.
    let rows = ["sum:wait", "count", "mean:wait", "max:wait", "share:wait", "p50:wait"];
    let thread = ask(&model, &json!({"ask": "table", "table": "waits", "by": by, "show": sums, "tree": true}));
    let (thread, all) = (thread.json["rows"][0][0].clone(), thread.json["matched_rows"].as_u64().unwrap());
    assert!(all > 200_000, "{all} rows are too few for several blocks");
    let windows = [[0.0, end], [0.0, end * 0.7], [end * 0.3, end * 0.31], [end * 0.2, end], [end * 0.9, end * 0.9001]];
    for (window, path) in windows.iter().flat_map(|w| [json!([]), json!([thread])].map(|path| (w, path))) {
        for selection in [json!({}), json!({"thread": thread}), json!({"thread": "nobody"})] {
            let question = |show: &[&str]| {
                let mut told = ask(
                    &model,
                    &json!({"ask": "table", "table": "waits", "by": by, "show": show, "tree": true, "path": path,
                        "window": window, "selection": selection}),
                )
                .json;
                for row in told["rows"].as_array_mut().unwrap() {
                    row.as_array_mut().unwrap().truncate(1 + sums.len());
                }
                (told["rows"].clone(), told["matched_rows"].clone(), told["total_rows"].clone())
            };
            assert_eq!(question(&sums), question(&rows), "{window:?} {path} {selection}");
        }
    }
}

/// What a flame graph shows of both halves is what it shows of the whole, whether parts were summed up before or not.
#[test]
fn flame_graphs_of_windows_add_up() {
    let model = model(Shape::Lock, 400_000);
    let end = end(&model);
    let total = |of: &str, window: [f64; 2], filter: &Value| {
        let told = ask(&model, &json!({"ask": "flame", "of": of, "window": window, "filter": filter})).json;
        told["total"].as_f64().unwrap()
    };
    let finding = json!({"finding": "f1"});
    let cut = end * 0.4321;
    let measure = || {
        let of = ["off", "wakers", "blame"].iter().flat_map(|of| [json!({}), finding.clone()].map(|f| (*of, f)));
        of.map(|(of, filter)| {
            let whole = total(of, [0.0, end], &filter);
            let halves = total(of, [0.0, cut], &filter) + total(of, [cut, end], &filter);
            assert!(whole > 0.0 && (halves - whole).abs() < 0.005 * whole, "{of} {filter}: {halves} of {whole}");
            whole
        })
        .collect::<Vec<f64>>()
    };
    let before = measure();
    model.prepare().unwrap();
    assert_eq!(before, measure());
}

/// What takes long is told from what does not, so that a server can keep room for the latter.
#[test]
fn slow_questions_are_known() {
    let model = model(Shape::Lock, 20_000);
    let pace = |question: Value| model.pace(&Question::parse(question.to_string().as_bytes()).unwrap().ask);
    let (explain, use_of_finding) =
        (json!({"ask": "explain"}), json!({"ask": "use", "window": [0, 1e9], "px": 10, "overlay": {"finding": "f1"}}));
    let table = json!({"ask": "table", "table": "waits", "by": ["process", "thread", "kind"]});
    for question in [&explain, &use_of_finding, &table] {
        assert_eq!(pace(question.clone()), Pace::Slow, "{question}");
    }
    assert_eq!(pace(json!({"ask": "use", "window": [0, 1e9], "px": 10})), Pace::Quick);
    model.prepare().unwrap();
    for question in [explain, use_of_finding, table] {
        assert_eq!(pace(question.clone()), Pace::Quick, "{question}");
    }
}

#[test]
fn flame_graphs_add_up() {
    let model = model(Shape::Lock, 100_000);
    for of in ["cpu", "off", "wakers", "blame"] {
        let told = ask(&model, &json!({"ask": "flame", "of": of}));
        let f64s = |name: &str| -> Vec<f64> {
            told.section(name).0.chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
        };
        let parents: Vec<u32> =
            told.section("parent").0.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        let (values, own) = (f64s("value"), f64s("self"));
        let total = told.json["total"].as_f64().unwrap();
        assert!(total > 0.0, "{of}");
        assert!((own.iter().sum::<f64>() - total).abs() < 1e-6 * total, "{of}");
        let roots: f64 = parents.iter().zip(&values).filter(|(p, _)| **p == u32::MAX).map(|(_, v)| v).sum();
        assert!((roots - total).abs() < 1e-6 * total, "{of}");
        assert!(parents.iter().enumerate().all(|(i, p)| *p == u32::MAX || (*p as usize) < i), "{of}");
    }
    assert!(refused(&model, &json!({"ask": "flame", "of": "cpu", "min_share": 7})).contains("min_share"));
}

#[test]
fn questions_without_sense_are_refused() {
    let model = model(Shape::Pool, 20_000);
    let nonsense = [
        json!({"ask": "everything"}),
        json!({"ask": "use", "window": [5, 1], "px": 10}),
        json!({"ask": "use", "window": [0, 1e9], "px": 1_000_000_000}),
        json!({"ask": "use", "window": [null, 1e9], "px": 10}),
        json!({"ask": "lanes", "window": [0, 1e9], "px": 10, "ids": ["t4000000000"]}),
        json!({"ask": "lanes", "window": [0, 1e9], "px": 10, "ids": vec!["c0"; 1000]}),
        json!({"ask": "lanes", "window": [0, 1e9], "px": 10, "ids": ["é"]}),
        json!({"ask": "at", "row": "c999", "time": 5}),
        json!({"ask": "chain", "wait": u64::MAX}),
        json!({"ask": "chain", "finding": "f99"}),
        json!({"ask": "code", "function": "nothing is called so"}),
        json!({"ask": "table", "table": "waits", "by": ["process"], "path": ["a", "b", "c"]}),
        json!({"ask": "table", "table": "waits", "where": ["((("]}),
        json!({"ask": "processes", "window": [1e300, -1e300], "limit": 5}),
        json!([1, 2, 3]),
    ];
    for question in nonsense {
        assert!(!refused(&model, &question).is_empty());
    }
    let cancelled = Cancel::default();
    cancelled.cancel();
    let told = Told::of(model.ask_json(br#"{"ask":"summary"}"#, &cancelled));
    assert_eq!(told.json, json!({"cancelled": true}));
}

#[test]
fn several_traces_are_compared() {
    let gallery = Gallery::default();
    let (a, b, plots) = (gallery.add("a"), gallery.add("b"), gallery.add("scale.json"));
    let ask = |question: Value| {
        let question = Question::parse(question.to_string().as_bytes()).unwrap();
        gallery.ask(&question, &Cancel::default()).map(|answer| Told::of(answer.0))
    };
    assert!(ask(json!({"trace": a, "ask": "summary"})).is_err(), "it is still being read");
    gallery.set(a, Item::Trace(model(Shape::Lock, 50_000).into()));
    gallery.set(b, Item::Failed("b cannot be read".into()));
    assert!(ask(json!({"trace": b, "ask": "summary"})).is_err());
    gallery.set(b, Item::Trace(model(Shape::Lock, 60_000).into()));
    let drawn = json!({"schema": "holdup.scale/1", "points": [{"n": 1, "throughput": 1.0}]}).to_string();
    gallery.set(plots, Item::Plots(holdup_view::Plots::read(drawn.as_bytes(), "scale.json").unwrap().into()));
    assert_eq!(
        ask(json!({"trace": plots, "ask": "plots"})).unwrap().json["plots"][0]["series"][0]["points"][0]["y"],
        1.0
    );
    assert_eq!(
        ask(json!({"trace": a, "ask": "diff", "before": [a], "after": [b]})).unwrap().json["schema"],
        "holdup.diff/1"
    );
    let flame = ask(json!({"trace": b, "ask": "flame", "of": "cpu", "against": a})).unwrap();
    assert!(flame.json["total_before"].as_f64().unwrap() > 0.0);
    assert_eq!(flame.section("before").0.len(), flame.section("value").0.len());
    let listed = Told::of(gallery.list().0).json;
    assert_eq!(listed["traces"][2]["kind"], "plots");
}
