-- The causes that cost most, day by day.
WITH worst AS (
    SELECT process, function
    FROM finding
    WHERE is_cause = 1
    GROUP BY process, function
    ORDER BY SUM(blame_ns) DESC, process, function
    LIMIT 6
)
SELECT f.date, f.process, f.function, SUM(f.blame_ns) AS blame_ns
FROM finding f JOIN worst w ON f.process = w.process AND f.function = w.function
WHERE f.is_cause = 1
GROUP BY f.date, f.process, f.function
ORDER BY f.date, f.process, f.function
