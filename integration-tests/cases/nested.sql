SELECT make_array(n, NULL, n * 2) AS list, make_array(make_array(n), make_array()) AS lists,
       named_struct('a', n, 'b', named_struct('c', 'x' || n, 'd', make_array(n))) AS record,
       MAP {'k' || n: n, 'z': NULL} AS mapped, arrow_cast(make_array(n, n), 'FixedSizeList(2, Int64)') AS pair
FROM (VALUES (1), (2), (3)) AS t(n)
ORDER BY n
