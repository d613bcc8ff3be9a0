-- Locks, by where they were waited for: an address would be another one in each process.
SELECT process, lock_kind, lock_name, wait_function,
       COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT trace) AS traces,
       SUM(blame_ns) AS blame_ns, SUM(waited_ns) AS waited_ns, SUM(waits) AS waits, MAX(longest_ns) AS longest_ns
FROM finding
WHERE is_cause = 1 AND lock_kind <> ''
GROUP BY process, lock_kind, lock_name, wait_function
ORDER BY blame_ns DESC, process, lock_kind, lock_name, wait_function
LIMIT 100
