SELECT * FROM tpch.lineitem WHERE l_orderkey < 200 ORDER BY l_orderkey, l_linenumber
