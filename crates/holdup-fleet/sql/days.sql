-- Days with traces.
SELECT date, COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT trace) AS traces
FROM trace
GROUP BY date
ORDER BY date
