SELECT CAST(n AS DECIMAL(7, 2)) AS money, CAST(n AS DECIMAL(38, 10)) AS large, arrow_cast(n, 'Decimal256(76, 20)') AS larger
FROM (VALUES ('0'), ('99999.99'), ('-99999.99'), (NULL), ('20'), ('17.685')) AS t(n)
