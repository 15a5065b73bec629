SELECT n.n_nationkey, n.n_name, r.r_name, n.n_comment
FROM tpch.nation AS n
JOIN tpch.region AS r ON n.n_regionkey = r.r_regionkey
ORDER BY n.n_nationkey
