SELECT a.n, b.m
FROM (SELECT n FROM (VALUES (1), (2), (3)) AS t(n) ORDER BY n LIMIT 2) AS a
CROSS JOIN (VALUES (10), (20), (30)) AS b(m)
ORDER BY a.n, b.m
