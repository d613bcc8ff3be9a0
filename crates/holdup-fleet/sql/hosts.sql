-- Each host's account.
SELECT host, COUNT(DISTINCT trace) AS traces,
       SUM(held_up_ns) AS held_up_ns, SUM(runnable_idle_ns) AS runnable_idle_ns, SUM(spin_ns) AS spin_ns,
       SUM(busy_ns) AS busy_ns, SUM(total_ns) AS total_ns, SUM(lost_ns) AS lost_ns
FROM trace
GROUP BY host
ORDER BY host
