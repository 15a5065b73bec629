WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 50)
SELECT n, n * n AS square FROM counted ORDER BY n
