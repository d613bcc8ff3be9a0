"""Draws when the CPUs stood still, and who was behind it.

    holdup export build.holdup --format parquet -o build
    holdup explain build.holdup --json > build/explain.json
    python3 standstill.py build standstill.png

CPU use comes from the table of switches alone; the first finding tells where to look.
"""

import json
import sys

import duckdb
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def use_of_cpus(folder, slots):
    """Seconds since the start, and how many CPUs ran a thread then, for each of `slots` equal stretches of time."""
    meta = json.load(open(f"{folder}/meta.json"))
    width = meta["duration_ns"] / slots
    # A thread runs on a CPU from the switch that brings it to the next one there; thread 0 is the idle task.
    rows = duckdb.sql(f"""
        with runs as (
            select t as start, lead(t, 1, {meta["duration_ns"]}) over (partition by cpu order by t) as stop, next
            from '{folder}/switch.parquet'
        ), parts as (
            select unnest(range(floor(start / {width})::bigint, floor(stop / {width})::bigint + 1)) as slot, start, stop
            from runs where next <> 0
        )
        select slot, sum(greatest(0, least(stop, (slot + 1) * {width}) - greatest(start, slot * {width}))) / {width}
        from parts where slot < {slots} group by slot order by slot
    """).fetchall()
    busy = dict(rows)
    return [(i + 0.5) * width / 1e9 for i in range(slots)], [busy.get(i, 0.0) for i in range(slots)], meta["cpus"]


def runs_of(folder, tid):
    """From when to when a thread ran, in seconds."""
    return duckdb.sql(f"""
        with runs as (
            select t, lead(t) over (partition by cpu order by t) as stop, next from '{folder}/switch.parquet'
        )
        select t / 1e9, (stop - t) / 1e9 from runs join '{folder}/thread.parquet' on id = next
        where tid = {tid} and stop is not null order by 1
    """).fetchall()


def main(folder, picture):
    finding = json.load(open(f"{folder}/explain.json"))["findings"][0]
    culprit = finding["culprit"]
    seconds, cpus, all_cpus = use_of_cpus(folder, 400)

    figure, (use, who) = plt.subplots(
        2, 1, sharex=True, figsize=(10, 4.5), height_ratios=[5, 1], layout="constrained"
    )
    figure.suptitle(finding["title"], fontsize=11, x=0.01, ha="left", wrap=True)
    use.fill_between(seconds, cpus, step="mid", color="#4c78a8")
    use.set_ylim(0, all_cpus)
    use.set_xlim(0, 2 * seconds[-1] - seconds[-2])
    use.yaxis.get_major_locator().set_params(integer=True)
    use.set_ylabel("CPUs in use")
    for start, stop in finding["windows"]:
        use.axvspan(start, stop, color="#e45756", alpha=0.25, lw=0)
    who.broken_barh(runs_of(folder, culprit["tid"]), (0, 1), color="#e45756")
    who.set_yticks([0.5], [f"{culprit['thread']}\n({culprit['tid']})"])
    who.set_xlabel("seconds; red: when somebody waited for it, and when it ran")
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
