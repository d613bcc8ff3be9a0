-- Where the CPU time of each kernel and processor went.
SELECT kernel, architecture, cpu_model,
       COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT trace) AS traces,
       SUM(held_up_ns) AS held_up_ns, SUM(runnable_idle_ns) AS runnable_idle_ns, SUM(spin_ns) AS spin_ns,
       SUM(busy_ns) AS busy_ns, SUM(total_ns) AS total_ns
FROM trace
GROUP BY kernel, architecture, cpu_model
ORDER BY held_up_ns DESC, kernel, architecture, cpu_model
LIMIT 100
