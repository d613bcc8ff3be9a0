/**
 * What the page asks and what it is told: the contract with `holdup-view`. Times are nanoseconds since the trace's
 * beginning unless a name ends in `_s` (seconds). All strings are untrusted and are set as text only.
 */

// Long because it is the whole contract: one place to read what is asked and answered.

export type Window = readonly [from: number, to: number];

/** An opened file. */
export interface TraceInfo {
  id: number;
  name: string;
  /** `plots`: a result of lab, scale, load or fleet; it answers `plots` alone. */
  kind: "trace" | "plots";
  /** Set while it is being read: the share that is done. */
  reading?: number;
  error?: string;
}

// --- holdup.explain/1 -------------------------------------------------------------------------------------------

export interface Instruction {
  address: string;
  text: string;
  share: number;
  around?: { address: string; text: string; share: number; in_loop: boolean }[];
}

export interface Culprit {
  process: string;
  pid: number;
  thread: string;
  tid: number;
  threads: number;
  processes: number;
  function: string;
  module: string;
  source: string;
  called_by: string;
  called_at: string;
  /** Absent where no command line tells. */
  works_on?: { what: string; share: number }[];
  instruction: Instruction | null;
}

export interface LockFacts {
  kind: string;
  address: string;
  name: string;
}

export interface Finding {
  id: string;
  kind: string;
  title: string;
  culprit: Culprit;
  lock: LockFacts | null;
  release_stack: string[];
  wait_stack: string[];
  waiters: {
    threads: number;
    waits: number;
    total_s: number;
    mean_s: number;
    max_s: number;
    names: string[];
    function: string;
    source: string;
  };
  blame_cpu_s: number;
  share_of_held_up: number;
  gain_at_most: number | null;
  lasted_s: number;
  windows: [number, number][];
  confidence: "high" | "medium" | "low";
  doubts: string[];
  evidence: string[];
  advice: string;
}

export interface Stall {
  windows: [number, number][];
  count: number;
  longest_s: number;
  shortest_s: number;
  waiters: number;
  names: string[];
  culprit: Culprit;
  title: string;
}

export interface CpuSeconds {
  total: number;
  busy: number;
  spin: number;
  other: number;
  held_up: number;
  runnable_idle: number;
  no_work: number;
  lost: number;
}

export interface Explain {
  trace: { path: string; format: string; start_s: number; duration_s: number; cpus: number; focus: string };
  caveats: { what: string; record: string[] }[];
  cpu_seconds: CpuSeconds;
  mostly_idle: boolean;
  hot: {
    process: string;
    function: string;
    module: string;
    share: number;
    kernel: number;
    below: string;
    below_share: number;
  }[];
  findings: Finding[];
  smaller: { causes: number; blame_cpu_s: number };
  stalls: Stall[];
  health: Record<string, number>;
  /** For each finding its culprit's row, as `rows` names it; null where it is no thread. */
  culprit_rows?: (string | null)[];
}

// --- answers ----------------------------------------------------------------------------------------------------

export interface ColumnInfo {
  name: string;
  /** `ns`, `count`, `text`, `share`, `address`, `bytes`, … */
  unit: string;
  doc: string;
  /** Windows Performance Analyzer's names, which are also found by the search of columns. */
  wpa?: string[];
}

export interface TableInfo {
  name: string;
  doc: string;
  columns: ColumnInfo[];
  default_by?: string[];
  default_columns: string[];
  default_measures: string[];
}

export interface Preset {
  name: string;
  doc: string;
  table: string;
  by: string[];
  show: string[];
  filter: string | null;
  sort: string[];
}

export interface Loss {
  what: string;
  cpu: number | null;
  from: number;
  to: number;
  count: number;
}

export interface Summary {
  name: string;
  format: string;
  host: Record<string, unknown>;
  duration_ns: number;
  cpus: number;
  focus: string;
  threads: number;
  processes: number;
  losses: Loss[];
  /** Rows of the table `span`. */
  spans?: number;
  presets: Preset[];
  tables: TableInfo[];
  /** Of which recording this is a part, and of it which windows; what held all of it up, and why no more is here. */
  part?: { of: { duration_s: number }; windows: [number, number][]; explain?: Explain; why?: string } | null;
}

/** `use`: sections of f32, one value for each pixel, in CPUs. */
export interface UseAnswer {
  window: [number, number];
  px: number;
  cpus: number;
  /** In the order of stacking; `f1`… name findings, `held_rest` all others. */
  series: string[];
  /** Whether what stood still is split by finding; not before `explain` was answered. */
  split: boolean;
  /** Section `overlay`: CPU use of what the request asked to lay over; null without. */
  overlay: { label: string } | null;
}

export interface Row {
  /** Opaque and stable for one trace. */
  id: string;
  depth: number;
  /** `spans`: of the thread or closed group above; `lanes` does not know it, `spans` does. */
  kind: "cpu" | "program" | "name" | "thread" | "spans";
  label: string;
  detail: string;
  threads: number;
  open: boolean;
  blame_s: number;
  cpu_s: number;
  held_s: number;
}

export interface RowsAnswer {
  rows: Row[];
  total: number;
  /** With `reveal`: the index at which that row is now, with its groups opened; null if it is not there. */
  at?: number | null;
  /** With `reveal`: groups that were opened for it. */
  opened?: string[];
}

/**
 * `lanes`: sections of u8, rows × px: `state`, `share` (of the pixel that is in that state) and `run` (that it ran,
 * whatever the state is); for CPU rows `who` (u32 index into `names`, rows × px).
 */
export interface LanesAnswer {
  window: [number, number];
  px: number;
  ids: string[];
  names?: string[];
}

/**
 * `spans`: sections rows × px: `share` (u8, of the pixel that lies in spans), `standing` (u8, of the slowest there: 0 none, 1 typical, 2 not
 * seen whole, 3 slow, 4 slowest) and `span` (u32, the id of the one that fills it; 0xffffffff for several).
 */
export interface SpansAnswer {
  window: [number, number];
  px: number;
  ids: string[];
  labels: { row: number; from: number; to: number; text: string }[];
}

export interface SpanShown {
  id: number;
  name: string;
  argument: string;
  start: number;
  end: number;
  outcome: string;
  standing: string;
  /** How many of its name are at least as long; 0 if it was not seen whole. */
  rank: number;
  /** How many of its name were seen whole. */
  count: number;
  p50: number;
  p99: number;
  max: number;
  thread: string;
  thread_row: string;
  /** The lane in which it is drawn. */
  row: string;
}

/** `span` by a place. */
export interface SpanAt {
  span: SpanShown | null;
}

/** `span` by its id. */
export interface SpanAnswer extends SpanShown {
  ended_on: string | null;
  queued: number;
  pieces: { from_s: number; length_s: number; what: string; said: string; function: string; row: string | null }[];
  rest_s: number;
  /** Why there are no pieces; else empty. */
  note: string;
}

/** `slowest`: names by how much longer their slow ones take, all together. */
export interface SlowestAnswer {
  names: { name: string; count: number; open: number; p50: number; p99: number; max: number; slowest: SpanShown[] }[];
  further: number;
  left_out: number;
}

/** `slow`: what the slow ones of a name have that the others have not. */
export interface SlowAnswer {
  headline: string;
  doubt: string;
  confidence: "high" | "medium" | "low";
  causes: { said: string; function: string; slow_s: number; typical_s: number }[];
}

export interface ProcessesAnswer {
  rows: { pid: number; name: string; from: number; to: number; parent: number | null; cpu_s: number }[];
  total: number;
}

export interface WaitAt {
  id: number | null;
  kind: string;
  place: string;
  function: string;
  stack: string[];
  waker: string;
  waker_row: string | null;
  waker_context: string;
  waker_stack: string[];
  lock: LockFacts | null;
  /** The end of its chain in words. */
  terminal: string;
  woken: number | null;
}

export interface AtAnswer {
  row: string;
  state: string;
  thread: string;
  from: number;
  to: number;
  cpu: number | null;
  /** Of a thread that runs: its hottest function then, if there were samples. */
  function?: string;
  wait: WaitAt | null;
}

export interface Who {
  process: string;
  pid: number;
  thread: string;
  tid: number;
}

export interface ChainDocument {
  also_waiting: number;
  note: string;
  at_s: number | null;
  hops: {
    who: Who;
    by: string;
    did: {
      from_s: number;
      to_s: number;
      ran_s: number;
      ready_s: number;
      waited_s: number;
      function: string;
      source: string;
      samples: number;
      instruction: Instruction | null;
      behind: { who: Who; ran_s: number }[];
    };
    wait: {
      id: number | null;
      kind: string;
      lock: LockFacts | null;
      start_s: number;
      woken_s: number;
      waited_s: number;
      ready_s: number;
      open: boolean;
      ended_by: string;
      function: string;
      stack: string[];
      waker_stack: string[];
    } | null;
    part_s: number;
    alone_s: number;
    at: boolean;
  }[];
  end: { kind: string; text: string; main_hop: number; main_share: number; part_s: number };
  shares: { who: Who; what: string; function: string; part_s: number; share: number; times: number }[];
}

export interface ChainAnswer {
  chain: ChainDocument;
  /** As many as the chain has: what to draw where. */
  hops: {
    row: string | null;
    thread: string;
    /** What it did until it let the one before go on; for the first hop until it ran. */
    from: number;
    to: number;
    /** From when its own wait lasted, by which the chain goes on. */
    wait_from?: number | null;
    what: string;
    function: string;
    by: string;
  }[];
}

export type Cell = string | number | null;

export interface TableAnswer {
  table: string;
  by: string[];
  columns: { name: string; unit: string; doc?: string }[];
  rows: Cell[][];
  total_rows: number;
  matched_rows: number;
  focus: string;
}

/** Sections `name` u32, `parent` u32 (0xffffffff: a root), `value` f64, `self` f64, maybe `before` f64. */
export interface FlameAnswer {
  names: string[];
  /** What the values are: `s` or `samples`. */
  unit: string;
  total: number;
  total_before?: number;
  /** One sentence if something was left out, else empty. */
  cut: string;
}

export interface CodeDocument {
  function: string;
  module: string;
  arch: string;
  samples: number;
  samples_total: number;
  share: number;
  others: { function: string; module: string; samples: number }[];
  has_code: boolean;
  instructions: {
    address: string;
    offset: number;
    text: string;
    samples: number;
    share: number;
    source: string;
    file: string;
    line: number;
    source_text: string;
    inlined: string;
    loops: number[];
  }[];
  loops: { from: string; to: string; instructions: number; samples: number; share: number; spins: boolean; text: string }[];
  notes: string[];
}

export interface DiffDocument {
  before: DiffSide;
  after: DiffSide;
  slower: number;
  cpu: number;
  changes: {
    what: string;
    name: string;
    process: string;
    cpu_s: [number, number];
    wait_s: [number, number];
    delta_s: number;
    role: "cause" | "symptom" | "unclear";
    because: string;
    significance: number | null;
  }[];
  within_noise: number;
  notes: string[];
}

export interface DiffSide {
  traces: string[];
  runs: number;
  elapsed_s: number;
  cpu_s: number;
  held_up_s: number;
  other_share: number;
}

export interface SearchAnswer {
  threads: { row: string; label: string; detail?: string }[];
  functions: { function: string; module: string; process?: string; samples?: number }[];
  locks: { key: string; label: string; wait_s?: number }[];
  processes: { row: string; label: string }[];
}

export interface PlotSeries {
  name: string;
  points: { x: number; y: number; low?: number; high?: number }[];
  /** `line` for a fitted law, `points` for what was measured, `dots` where it has no order. */
  style?: "line" | "points" | "dots";
}

export interface PlotAxis {
  label: string;
  unit: string;
  log?: boolean;
  /** What the whole numbers from 0 on stand for. */
  names?: string[];
  /** Its ends, where several plots share them. */
  ends?: [number, number];
}

export interface Plot {
  title: string;
  x: PlotAxis;
  y: PlotAxis;
  series: PlotSeries[];
  verdict: string;
  notes: string[];
}

export interface PlotsAnswer {
  title: string;
  plots: Plot[];
}

// --- requests ---------------------------------------------------------------------------------------------------

/** What a flame graph, a table or an overlay is restricted to. */
export interface Selection {
  /** A thread's name, where a row of a table was selected. */
  thread?: string;
  row?: string;
  process?: string;
  finding?: string;
  lock?: string;
  function?: string;
}

export type Request =
  | { ask: "summary" }
  | { ask: "explain" }
  | { ask: "use"; window: Window; px: number; finding?: string; overlay?: Selection }
  | {
      ask: "rows";
      lanes: "cpu" | "thread";
      open: string[];
      search?: string;
      offset: number;
      limit: number;
      selection?: Selection;
      reveal?: string;
      spans?: boolean;
    }
  | { ask: "lanes"; window: Window; px: number; ids: string[] }
  | { ask: "spans"; window: Window; px: number; ids: string[] }
  | { ask: "span"; id?: number; row?: string; time?: number; slack?: number; step?: -1 | 1 }
  | { ask: "slowest"; top: number }
  | { ask: "slow"; name: string }
  | { ask: "processes"; window: Window; px: number; offset: number; limit: number }
  | { ask: "at"; row: string; time: number }
  | { ask: "chain"; wait?: number; row?: string; time?: number; finding?: string }
  | {
      ask: "table";
      table: string;
      by: string[];
      show: string[];
      where?: string[];
      sort?: string[];
      top?: number;
      window?: Window;
      /** Values of the first columns of `by`: only rows of that group, grouped by the next column. */
      path?: Cell[];
      /** One level of the groups alone, also without a path. */
      tree?: boolean;
      csv?: boolean;
      selection?: Selection;
    }
  | {
      ask: "flame";
      of: "cpu" | "off" | "wakers" | "blame";
      window?: Window;
      filter?: Selection;
      callers?: boolean;
      left_heavy?: boolean;
      min_share?: number;
      against?: number;
    }
  | { ask: "code"; function: string; module?: string }
  | { ask: "diff"; before: number[]; after: number[] }
  | { ask: "search"; text: string; limit: number }
  | { ask: "plots" };
