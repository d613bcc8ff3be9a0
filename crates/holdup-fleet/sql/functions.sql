-- Functions that ran most.
SELECT process, module, function,
       COUNT(DISTINCT host) AS hosts, COUNT(DISTINCT trace) AS traces,
       SUM(cpu_ns) AS cpu_ns, SUM(samples) AS samples
FROM function
GROUP BY process, module, function
ORDER BY cpu_ns DESC, process, module, function
LIMIT 100
