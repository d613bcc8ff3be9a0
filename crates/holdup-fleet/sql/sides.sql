-- Each host's account before a day and from it on.
SELECT t.host,
       SUM(CASE WHEN t.date < c.cut THEN t.held_up_ns ELSE 0 END) AS held_up_before_ns,
       SUM(CASE WHEN t.date < c.cut THEN t.total_ns ELSE 0 END) AS total_before_ns,
       SUM(CASE WHEN t.date < c.cut THEN 0 ELSE t.held_up_ns END) AS held_up_after_ns,
       SUM(CASE WHEN t.date < c.cut THEN 0 ELSE t.total_ns END) AS total_after_ns
FROM trace t CROSS JOIN chosen c
GROUP BY t.host
ORDER BY t.host
