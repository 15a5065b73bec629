SELECT o_custkey, o_orderkey, o_totalprice, row_number() OVER w AS nth, sum(o_totalprice) OVER w AS running
FROM tpch.orders
WHERE o_custkey < 20
WINDOW w AS (PARTITION BY o_custkey ORDER BY o_orderkey)
ORDER BY o_custkey, o_orderkey
