-- Days with traces, and the account of each.
SELECT date, COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT trace) AS traces,
       SUM(held_up_ns) AS held_up_ns, SUM(total_ns) AS total_ns
FROM trace
GROUP BY date
ORDER BY date
