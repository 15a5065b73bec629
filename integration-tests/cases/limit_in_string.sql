SELECT 'no LIMIT 1 here' AS text, n FROM (VALUES (1), (2), (3)) AS t(n) ORDER BY n
