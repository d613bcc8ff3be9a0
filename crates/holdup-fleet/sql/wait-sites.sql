-- Functions in which threads waited for a cause.
SELECT process, wait_function, kind,
       COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT trace) AS traces,
       SUM(blame_ns) AS blame_ns, SUM(waited_ns) AS waited_ns, SUM(waits) AS waits, MAX(longest_ns) AS longest_ns
FROM finding
WHERE is_cause = 1 AND wait_function <> ''
GROUP BY process, wait_function, kind
ORDER BY blame_ns DESC, process, wait_function, kind
LIMIT 100
