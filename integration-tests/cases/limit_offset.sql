SELECT l_orderkey, l_linenumber, l_quantity
FROM tpch.lineitem
ORDER BY l_orderkey, l_linenumber
LIMIT 7
OFFSET 1000
