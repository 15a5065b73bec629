SELECT c_mktsegment, count(*) AS customers, min(c_name) AS first, max(c_acctbal) AS richest
FROM tpch.customer
GROUP BY c_mktsegment
ORDER BY c_mktsegment
