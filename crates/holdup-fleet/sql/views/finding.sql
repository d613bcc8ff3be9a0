-- Findings of these. What a writer left that was killed before it came to the trace's own row is not among them.
SELECT f.*
FROM all_finding f LEFT SEMI JOIN trace t ON f.trace = t.trace
