SELECT 1 AS x, 2 AS "X", 'ü' AS "列 ☃", 3 AS "a.b", 4 AS "two words"
