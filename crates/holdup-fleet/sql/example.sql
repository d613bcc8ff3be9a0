-- Traces that show a cause best: those in which it has the largest share of the CPU time.
SELECT f.host, f.date, t.started_ns, f.trace, t.label, t.source, t.recording, MIN(f.title) AS title,
       SUM(f.blame_ns) AS blame_ns, MAX(t.total_ns) AS total_ns, MAX(t.lost_events) AS lost_events
FROM finding f JOIN trace t ON f.trace = t.trace CROSS JOIN wanted w
WHERE f.is_cause = 1
  AND (w.process = '' OR f.process = w.process)
  AND (w.function = '' OR f.function = w.function OR f.wait_function = w.function)
  AND (w.kind = '' OR f.kind = w.kind)
GROUP BY f.host, f.date, t.started_ns, f.trace, t.label, t.source, t.recording
ORDER BY CAST(SUM(f.blame_ns) AS DOUBLE) / CAST(GREATEST(MAX(t.total_ns), 1) AS DOUBLE) DESC, SUM(f.blame_ns) DESC, f.trace
LIMIT 10
