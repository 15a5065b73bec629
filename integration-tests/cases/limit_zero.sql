SELECT * FROM tpch.orders LIMIT 0
