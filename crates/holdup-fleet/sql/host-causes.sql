-- Causes by host.
SELECT process, function, host, SUM(blame_ns) AS blame_ns
FROM finding
WHERE is_cause = 1
GROUP BY process, function, host
ORDER BY process, function, host
