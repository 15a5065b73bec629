SELECT n_nationkey, n_name FROM tpch.nation ORDER BY n_nationkey FETCH FIRST 3 ROWS ONLY
