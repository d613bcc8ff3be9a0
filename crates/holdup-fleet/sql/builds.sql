-- Builds of the files whose code held threads up.
SELECT module, build_id,
       COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT trace) AS traces, MIN(date) AS since, MAX(date) AS until,
       SUM(blame_ns) AS blame_ns
FROM finding
WHERE is_cause = 1 AND module <> ''
GROUP BY module, build_id
ORDER BY blame_ns DESC, module, build_id
LIMIT 100
