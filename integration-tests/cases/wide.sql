SELECT l.*, o.*, c.*, n.*, r.*
FROM tpch.lineitem AS l
JOIN tpch.orders AS o ON l.l_orderkey = o.o_orderkey
JOIN tpch.customer AS c ON o.o_custkey = c.c_custkey
JOIN tpch.nation AS n ON c.c_nationkey = n.n_nationkey
JOIN tpch.region AS r ON n.n_regionkey = r.r_regionkey
WHERE l.l_orderkey < 40
ORDER BY l.l_orderkey, l.l_linenumber
