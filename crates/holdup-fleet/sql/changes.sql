-- Causes by host, before a day and from it on. A cause is a function of a process: its kind may differ from one trace to the next.
SELECT f.process, f.function, f.host,
       SUM(CASE WHEN f.date < c.cut THEN f.blame_ns ELSE 0 END) AS before_ns,
       SUM(CASE WHEN f.date < c.cut THEN 0 ELSE f.blame_ns END) AS after_ns
FROM finding f CROSS JOIN chosen c
WHERE f.is_cause = 1
GROUP BY f.process, f.function, f.host
ORDER BY f.process, f.function, f.host
