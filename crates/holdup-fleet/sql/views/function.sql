-- What ran in these.
SELECT f.*
FROM all_function f LEFT SEMI JOIN trace t ON f.trace = t.trace
