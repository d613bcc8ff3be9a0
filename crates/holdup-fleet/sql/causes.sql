-- What cost most CPU time over all hosts: CPUs that stood still while threads waited for it.
SELECT process, function, kind, lock_kind, lock_name,
       COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT trace) AS traces,
       SUM(blame_ns) AS blame_ns, SUM(waited_ns) AS waited_ns, SUM(waits) AS waits
FROM finding
WHERE is_cause = 1
GROUP BY process, function, kind, lock_kind, lock_name
ORDER BY blame_ns DESC, process, function, kind, lock_kind, lock_name
LIMIT 100
