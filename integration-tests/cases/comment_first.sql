/* LIMIT 1 */ -- LIMIT 2
SELECT n FROM (VALUES (1), (2), (3)) AS t(n) ORDER BY n
