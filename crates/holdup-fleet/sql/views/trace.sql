-- Traces of the chosen days.
SELECT t.*
FROM all_trace t CROSS JOIN chosen c
WHERE t.date >= c.since AND t.date <= c.until
