#!/bin/sh
# Records a benchmark on two commits of the repository in which it is called, in turns, and fails if the later one is slower, with the reason.
#
#     compare-commits.sh BASE HEAD 'BUILD' 'BENCHMARK'
#
# BUILD and BENCHMARK are commands of the shell, run in a checkout of each commit; the build is not recorded. Exit code 0: not slower; 1: something
# grew by more than FAIL_ON; another one: something else went wrong. Settings, by the environment:
#
#     RUNS=5           of each commit; three are the least that tell noise from change
#     FAIL_ON=5%       what counts as slower
#     OUT=holdup-ci    where the recordings and the comparison are left: keep this folder as the job's artifact
#     HOLDUP=holdup    the program; recording needs root, or what docs/kernels.md says
set -eu

if [ $# -ne 4 ]; then
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
base=$1 head=$2 build=$3 benchmark=$4
runs=${RUNS:-5} fail_on=${FAIL_ON:-5%} holdup=${HOLDUP:-holdup}
mkdir -p "${OUT:-holdup-ci}"
out=$(cd "${OUT:-holdup-ci}" && pwd)

checkouts=$(mktemp -d)
clean() {
    for side in before after; do
        git worktree remove --force "$checkouts/$side" 2>/dev/null || true
    done
    rm -rf "$checkouts"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

git worktree add --quiet --detach "$checkouts/before" "$base"
git worktree add --quiet --detach "$checkouts/after" "$head"
for side in before after; do
    (cd "$checkouts/$side" && sh -c "$build")
done
# In turns, so that what changes on the machine meanwhile is on both sides.
i=1
while [ "$i" -le "$runs" ]; do
    for side in before after; do
        (cd "$checkouts/$side" && "$holdup" record -o "$out/$side-$i.holdup" -- sh -c "$benchmark")
    done
    i=$((i + 1))
done

code=0
"$holdup" diff "$out"/before-*.holdup --vs "$out"/after-*.holdup --fail-on "$fail_on" --flame "$out/diff.svg" >"$out/diff.txt" || code=$?
cat "$out/diff.txt"
exit "$code"
